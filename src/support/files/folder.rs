//! The folder that `--out` gives. A run takes it for one writer, since two would tear each other's lines.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// A folder taken for this process alone, until it is dropped or the process ends, however it
/// does. The file stays: to remove it would let two others take it at once.
#[derive(Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "the lock lives as long as the file")] File);

impl FolderLock {
    /// The name of the file that is locked.
    pub const FILE: &str = ".lock";

    /// Takes a folder.
    ///
    /// # Errors
    ///
    /// Another process has it, or the folder cannot be written to.
    pub fn take(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(Self::FILE);
        let place = || {
            format!(
                "cannot lock {}\nhint: name a folder with --out that you may write to",
                folder.display()
            )
        };
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).with_context(place)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                // Who it is helps, but is not worth failing for; one that has just begun has not said it.
                let _ = file.read_to_string(&mut owner);
                let owner = match owner.trim() {
                    "" => String::new(),
                    process => format!(" (process {process})"),
                };
                bail!(
                    "{}: another run is writing here{owner}\n\
                     hint: wait for it, or name another folder with --out",
                    folder.display()
                );
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(place),
        }
        file.set_len(0).with_context(place)?;
        writeln!(file, "{}", std::process::id()).with_context(place)?;
        Ok(Self(file))
    }
}

/// The names in the folder that `--out` gives, or in one inside it.
pub fn list(folder: &Path) -> anyhow::Result<Vec<String>> {
    let read = || -> std::io::Result<Vec<String>> {
        fs::read_dir(folder)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into()))
            .collect()
    };
    read().with_context(|| {
        format!(
            "--out {}: cannot list this folder\nhint: name one that you may read and write",
            folder.display()
        )
    })
}

/// Makes the folder that `--out` gives, or one inside it, where there is none.
pub fn make(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() && !folder.is_dir() {
        bail!(
            "--out {}: there is a file of this name, expected a folder\nhint: name another",
            folder.display()
        );
    }
    fs::create_dir_all(folder).with_context(|| {
        format!(
            "--out {}: cannot be made\nhint: name a folder that you may write to",
            folder.display()
        )
    })
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
/// The whole path of the folder in which a file lies; a bare name lies where the program was started.
pub fn folder_of(path: &Path) -> anyhow::Result<PathBuf> {
    let whole = std::path::absolute(path).with_context(|| path.display().to_string())?;
    Ok(whole.parent().unwrap_or(&whole).to_owned())
}
