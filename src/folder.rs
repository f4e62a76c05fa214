//! The folder of a run: taken by one writer, since two would tear each other's lines.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::journal::RECORDS;

const LOCK: &str = ".lock";

/// A folder taken for this process alone, until it is dropped or the process ends, however it
/// does. The file stays: to remove it would let two others take it at once.
#[derive(Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "the lock lives as long as the file")] File);

impl FolderLock {
    /// Takes a folder.
    ///
    /// # Errors
    ///
    /// Another process has it, or the folder cannot be written to.
    pub fn take(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(LOCK);
        let place = || format!("cannot lock {}", folder.display());
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).with_context(place)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                // Who it is helps, but is not worth failing for.
                let _ = file.read_to_string(&mut owner);
                bail!(
                    "{}: another run is writing here (process {})\n\
                     hint: wait for it, or name another folder with --out",
                    folder.display(),
                    owner.trim()
                );
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(place),
        }
        file.set_len(0).with_context(place)?;
        writeln!(file, "{}", std::process::id()).with_context(place)?;
        Ok(Self(file))
    }
}

/// Whether a folder holds records.
pub fn holds_records(folder: &Path) -> bool {
    std::fs::metadata(folder.join(RECORDS)).is_ok_and(|file| file.len() > 0)
}

/// The first name beside this folder that is not taken: `demo-2`, `demo-3`, …
pub fn unused(folder: &Path) -> PathBuf {
    let name = folder
        .file_name()
        .map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let named = (2_u32..).map(|n| folder.with_file_name(format!("{name}-{n}")));
    let mut free = named.filter(|path| !path.exists());
    free.next().unwrap_or_else(|| folder.to_owned())
}
