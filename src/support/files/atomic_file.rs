//! A file that is there whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::{Context, Result};

/// Writes a file beside its place and, once it is on the disk, moves it there: a power cut leaves the old one or the new.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let part = path.with_extension("part");
    let kept = || -> io::Result<()> {
        let mut file = File::create(&part)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    kept()
        .and_then(|()| fs::rename(&part, path))
        .with_context(|| {
            format!(
                "cannot write {}\nhint: make sure that there is room and that you may write there",
                path.display()
            )
        })
}
