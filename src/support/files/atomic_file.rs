//! Atomic writes.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::{Context, Result};

/// Writes a file atomically: writes a temporary file, syncs it and renames it.
///
/// After a crash, the file has either the old or the new content.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = path.with_extension("part");
    let write = || -> io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().and_then(|()| fs::rename(&temporary, path)).with_context(|| {
        format!("cannot write {}\nhint: check free space and write permissions", path.display())
    })
}
