//! Output folder of a run: checks for records, and cleans up after a run without records.

use std::fs;
use std::path::Path;

use super::journal::RECORDS;
use super::manifest::MANIFEST;
use crate::support::files::folder::FolderLock;

/// Returns true if a folder contains records.
pub fn contains_records(folder: &Path) -> bool {
    fs::metadata(folder.join(RECORDS)).is_ok_and(|file| file.len() > 0)
}

/// Removes the files of a run that wrote no record, and the folder if the run created it. Ignores
/// files that cannot be removed.
pub fn remove_empty_output(folder: &Path, created: bool) {
    for name in [RECORDS, MANIFEST] {
        let _ = fs::remove_file(folder.join(name));
    }
    if created {
        // No other process holds this lock, because the folder is new and its run has ended.
        let _ = fs::remove_file(folder.join(FolderLock::FILE));
        let _ = fs::remove_dir(folder);
    }
}
