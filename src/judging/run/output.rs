//! The output folder of a run: whether it holds records, and undoing a run that made none.

use std::fs;
use std::path::Path;

use super::journal::RECORDS;
use super::manifest::MANIFEST;
use crate::support::files::folder::FolderLock;

/// Whether a folder holds records.
pub fn holds_records(folder: &Path) -> bool {
    fs::metadata(folder.join(RECORDS)).is_ok_and(|file| file.len() > 0)
}

/// Takes back what a run has made in a folder before it had a record, and the folder itself if it was
/// made for it. What cannot be removed stays.
pub fn abandon(folder: &Path, made: bool) {
    for name in [RECORDS, MANIFEST] {
        let _ = fs::remove_file(folder.join(name));
    }
    if made {
        // Nobody can hold this lock: the folder is new, and its run has ended.
        let _ = fs::remove_file(folder.join(FolderLock::FILE));
        let _ = fs::remove_dir(folder);
    }
}
