//! Names of the folders above a file, which often name its model.

use std::path::Path;

/// Maximum number of folders above a file that may name its model.
pub(super) const MAX_FOLDERS: usize = 6;

/// Returns the name of the `n`-th folder above a file.
pub(super) fn folder_above(path: &Path, n: usize) -> Option<String> {
    let full = std::path::absolute(path).ok()?;
    full.ancestors().nth(n)?.file_name().map(|name| name.to_string_lossy().into_owned())
}

/// Returns the names of the folders above a file, the nearest first.
pub(super) fn folder_names(path: &Path) -> Vec<String> {
    (1..=MAX_FOLDERS).map_while(|n| folder_above(path, n)).collect()
}
