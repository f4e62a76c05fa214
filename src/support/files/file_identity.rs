//! Identity of files: two paths may name the same file.

use std::path::Path;
#[cfg(not(unix))]
use std::path::PathBuf;

/// Identity of an existing file, equal for its symbolic and hard links.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// Device and inode.
    #[cfg(unix)]
    inode: [u64; 2],
    /// Canonical path. Hard links are different files here.
    #[cfg(not(unix))]
    path: PathBuf,
}

impl FileIdentity {
    /// Returns the identity of a file; `None` if it does not exist.
    #[cfg(unix)]
    pub fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = path.metadata().ok()?;
        Some(Self { inode: [metadata.dev(), metadata.ino()] })
    }

    /// Returns the identity of a file; `None` if it does not exist.
    #[cfg(not(unix))]
    pub fn of(path: &Path) -> Option<Self> {
        Some(Self { path: path.canonicalize().ok()? })
    }
}
