//! The output folder of a run: whether it holds records, and undoing a run that created none.

use std::fs;
use std::path::Path;

use super::journal::RECORDS;
use super::manifest::MANIFEST;
use crate::support::files::folder::FolderLock;

/// Whether a folder holds records.
pub fn holds_records(folder: &Path) -> bool {
    fs::metadata(folder.join(RECORDS)).is_ok_and(|file| file.len() > 0)
}

/// Removes the files of a run that wrote no record, and the folder if the run created it. Ignores files
/// that cannot be removed.
pub fn abandon(folder: &Path, created: bool) {
    for name in [RECORDS, MANIFEST] {
        let _ = fs::remove_file(folder.join(name));
    }
    if created {
        // No other process can hold this lock: the folder is new, and its run has ended.
        let _ = fs::remove_file(folder.join(FolderLock::FILE));
        let _ = fs::remove_dir(folder);
    }
}
