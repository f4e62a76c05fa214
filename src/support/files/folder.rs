//! Output folders (`--out`) and their lock. Two concurrent writers would corrupt each other's
//! lines.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};

/// Exclusive lock on a folder, released when it is dropped or the process ends.
///
/// The lock file is never removed. Otherwise two processes could lock the folder at the same time.
#[derive(Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "the lock lives as long as the file")] File);

impl FolderLock {
    /// The name of the lock file.
    pub const FILE: &str = ".lock";

    /// Locks a folder.
    ///
    /// # Errors
    ///
    /// If another process has locked the folder, or it is not writable.
    pub fn acquire(folder: &Path) -> anyhow::Result<Self> {
        Self::lock(&folder.join(Self::FILE), folder)
    }

    /// Locks a folder; `None` if another process has locked it.
    ///
    /// # Errors
    ///
    /// If the folder is not writable.
    pub fn try_acquire(folder: &Path) -> anyhow::Result<Option<Self>> {
        Self::try_lock(&folder.join(Self::FILE), folder).map(Result::ok)
    }

    /// Locks an output file with a lock file next to it: `.a.jsonl.lock` for `a.jsonl`.
    ///
    /// # Errors
    ///
    /// If another process has locked the file, or its folder is not writable.
    pub fn acquire_file(path: &Path) -> anyhow::Result<Self> {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        Self::lock(&path.with_file_name(format!(".{name}.lock")), path)
    }

    /// Locks the file at `path`, for the output at `out`.
    fn lock(path: &Path, out: &Path) -> anyhow::Result<Self> {
        Self::try_lock(path, out)?.map_err(|owner| {
            anyhow!(
                "{}: another run is writing here{owner}\n\
                 hint: wait for it, or choose another --out",
                out.display()
            )
        })
    }

    /// Locks the file at `path`, for the output at `out`. If another process has locked it, the inner error
    /// names the process.
    fn try_lock(path: &Path, out: &Path) -> anyhow::Result<Result<Self, String>> {
        let context =
            || format!("cannot lock {}\nhint: choose a writable folder with --out", out.display());
        check_lock_file(path)?;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).with_context(context)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                // The process id is only informative. A process that has just started may not have
                // written it yet.
                let _ = file.read_to_string(&mut owner);
                return Ok(Err(match owner.trim() {
                    "" => String::new(),
                    process => format!(" (process {process})"),
                }));
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(context),
        }
        file.set_len(0).with_context(context)?;
        writeln!(file, "{}", std::process::id()).with_context(context)?;
        Ok(Ok(Self(file)))
    }
}

/// Checks that a lock file is new, or contains a process id: locking overwrites it.
fn check_lock_file(path: &Path) -> anyhow::Result<()> {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    // A longer file is no process id.
    let is_short = metadata.is_file() && metadata.len() <= 32;
    let text = if is_short { fs::read_to_string(path).ok() } else { None };
    let is_own = |text: &String| text.trim().chars().all(|c| c.is_ascii_digit());
    // A lock file that cannot be read is reported when it is opened.
    if !is_short || text.is_some_and(|text| !is_own(&text)) {
        bail!(
            "{}: not a lock file of acem3\nhint: choose another folder with --out",
            path.display()
        );
    }
    Ok(())
}

/// Returns the names of the entries of an output folder.
pub fn list_names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let read = || -> std::io::Result<Vec<String>> {
        fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into())).collect()
    };
    read().with_context(|| {
        format!(
            "--out {}: cannot list the folder\nhint: choose a readable and writable folder",
            folder.display()
        )
    })
}

/// Removes the files of a folder that have other names.
///
/// # Errors
///
/// A file cannot be removed.
pub fn remove_other_files(folder: &Path, names: &BTreeSet<String>) -> anyhow::Result<()> {
    for name in list_names(folder)?.iter().filter(|name| !names.contains(*name)) {
        let path = folder.join(name);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// Creates an output folder, unless it exists.
pub fn create_folder(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() && !folder.is_dir() {
        bail!(
            "--out {}: is a file, expected a folder\nhint: choose another name",
            folder.display()
        );
    }
    fs::create_dir_all(folder).with_context(|| {
        format!(
            "--out {}: cannot create the folder\nhint: choose a writable folder",
            folder.display()
        )
    })
}

/// Returns the first free name next to a folder: `demo-2`, `demo-3`, …
pub fn free_sibling_name(folder: &Path) -> PathBuf {
    let name = folder.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let candidates = (2_u32..).map(|n| folder.with_file_name(format!("{name}-{n}")));
    let mut free = candidates.filter(|path| !path.exists());
    free.next().unwrap_or_else(|| folder.to_owned())
}

/// Returns the absolute path of the folder of a file.
pub fn parent_folder(path: &Path) -> anyhow::Result<PathBuf> {
    let path = std::path::absolute(path).with_context(|| path.display().to_string())?;
    Ok(path.parent().unwrap_or(&path).to_owned())
}
