//! Atomic writes.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::{Context, Result};

/// Writes a file atomically: to a temporary file, sync, rename. After a crash the file has the old content or the new.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let part = path.with_extension("part");
    let write = || -> io::Result<()> {
        let mut file = File::create(&part)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write()
        .and_then(|()| fs::rename(&part, path))
        .with_context(|| {
            format!(
                "cannot write {}\nhint: check free space and write permissions",
                path.display()
            )
        })
}
