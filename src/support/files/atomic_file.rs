//! Atomic writes.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Writes a file atomically: writes a temporary file, syncs it and renames it.
///
/// After a crash, the file has either the old or the new content.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    write_chunks_atomic(path, std::iter::once(Ok(bytes)))
}

/// Writes the chunks of an iterator to a file, as [`write_atomic`].
///
/// # Errors
///
/// The first error of the iterator, or the file cannot be written.
pub fn write_chunks_atomic<C: AsRef<[u8]>>(
    path: &Path,
    chunks: impl IntoIterator<Item = Result<C>>,
) -> Result<()> {
    let temporary = path.with_extension("part");
    let context =
        || format!("cannot write {}\nhint: check free space and write permissions", path.display());
    let file = File::create(&temporary).with_context(context)?;
    let write = || -> Result<()> {
        let mut file = BufWriter::new(file);
        for chunk in chunks {
            file.write_all(chunk?.as_ref()).with_context(context)?;
        }
        let file = file.into_inner().map_err(io::IntoInnerError::into_error);
        file.and_then(|file| file.sync_all()).with_context(context)?;
        fs::rename(&temporary, path).with_context(context)
    };
    let result = write();
    if result.is_err() {
        // The first error matters more than a temporary file that cannot be removed.
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Checks before a long computation that `--out` can be written: its folder exists, and it is no
/// folder itself.
pub fn check_out_file(path: &Path) -> Result<()> {
    if path.is_dir() {
        bail!(
            "--out {}: is a folder, expected a file\nhint: add the name of a file",
            path.display()
        );
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        bail!(
            "--out {}: no such folder {}\nhint: create the folder, or choose another file",
            path.display(),
            folder.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn failed_writes_leave_the_old_file_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        write_atomic(&path, b"old").unwrap();
        let error = write_chunks_atomic(&path, [Ok("new"), Err(anyhow!("line 2"))]).unwrap_err();
        assert_eq!(error.to_string(), "line 2");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert!(write_atomic(folder.path(), b"x").is_err());
        assert!(!folder.path().with_extension("part").exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn out_file_needs_a_folder_and_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check_out_file(&folder.path().join("a.html")).is_ok());
        assert!(check_out_file(Path::new("a.html")).is_ok());
        for (path, message) in [
            (folder.path().to_owned(), "is a folder, expected a file"),
            (folder.path().join("b/a.html"), "no such folder"),
        ] {
            let error = check_out_file(&path).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
