//! Atomic writes.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result};

use super::folder::list_names;

/// Maximum bytes of a file's name that its temporary name repeats. File systems allow 255.
const MAX_NAME_BYTES: usize = 200;
/// Number of random hexadecimal digits in a temporary name.
const RANDOM_DIGITS: usize = 16;
/// Number of temporary names to try. Another process has to guess 64 random bits to take one.
const MAX_ATTEMPTS: u32 = 8;
/// End of the names of temporary files.
const EXTENSION: &str = ".part";
/// Error for a path that is no regular file.
const NOT_A_FILE: &str =
    "a folder, pipe, socket or device, expected a file\nhint: choose another name";

/// Writes a file atomically: writes a temporary file, syncs it and renames it.
///
/// After a crash, the file has either the old or the new content. A symbolic link stays, and the
/// file that it points to is replaced. The new file has the permissions of the old one.
///
/// # Errors
///
/// The file cannot be written, or the path is a folder, a pipe, a socket or a device.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    write_chunks_atomic(path, std::iter::once(Ok(bytes)))
}

/// Writes the chunks of an iterator to a file, as [`write_atomic`].
///
/// # Errors
///
/// The first error of the iterator, or as [`write_atomic`].
pub fn write_chunks_atomic<C: AsRef<[u8]>>(
    path: &Path,
    chunks: impl IntoIterator<Item = Result<C>>,
) -> Result<()> {
    let mut chunk_error = None;
    let result = replace_atomic(path, |file| {
        for chunk in chunks {
            match chunk {
                Ok(chunk) => file.write_all(chunk.as_ref())?,
                Err(error) => {
                    chunk_error = Some(error);
                    return Err(io::Error::other("no chunk"));
                }
            }
        }
        Ok(())
    });
    if let Some(error) = chunk_error {
        return Err(error);
    }
    result.map_err(|error| {
        let hint = match error.kind() {
            // The error has its own hint.
            io::ErrorKind::InvalidInput => "",
            _ => "\nhint: check free space and write permissions",
        };
        Error::new(error).context(format!("cannot write {}{hint}", path.display()))
    })
}

/// Checks that a file can be written, by creating and removing a temporary file beside it.
///
/// # Errors
///
/// The folder is not writable.
pub(super) fn check_writable(path: &Path) -> io::Result<()> {
    let (temporary, _) = create_temporary(&replaced_file(path)?)?;
    fs::remove_file(temporary)
}

/// Replaces a file by what a function writes, as [`write_atomic`].
///
/// # Errors
///
/// The error of the function, or the file cannot be written. The error does not name the file.
pub fn replace_atomic(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let target = replaced_file(path)?;
    let (temporary, file) = create_temporary(&target)?;
    let replace = || {
        if let Ok(old) = target.metadata() {
            file.set_permissions(old.permissions())?;
        }
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&temporary, &target)
    };
    let result = replace();
    if result.is_err() {
        // The first error matters more than a temporary file that cannot be removed.
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Returns true for the name of a temporary file that [`write_atomic`] may leave if the process is
/// killed.
pub fn is_temporary_name(name: &str) -> bool {
    let random = name.strip_suffix(EXTENSION).and_then(|name| name.rsplit_once('.'));
    random.is_some_and(|(_, digits)| {
        digits.len() == RANDOM_DIGITS && digits.chars().all(|c| c.is_ascii_hexdigit())
    })
}

/// Removes the temporary files of killed processes from a folder in which no other process writes.
///
/// # Errors
///
/// A file cannot be removed.
pub fn remove_temporary_files(folder: &Path) -> Result<()> {
    for name in list_names(folder)?.into_iter().filter(|name| is_temporary_name(name)) {
        let path = folder.join(name);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// Returns the file that a write to `path` replaces: the path itself, or the target of a symbolic
/// link.
fn replaced_file(path: &Path) -> io::Result<PathBuf> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(error),
        Ok(metadata) if metadata.is_file() => Ok(path.to_owned()),
        Ok(_) if path.metadata()?.is_file() => path.canonicalize(),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, NOT_A_FILE)),
    }
}

/// Creates a file with an unused name next to `path`.
fn create_temporary(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let start = name.get(..name.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default();
    let mut attempt = 0;
    loop {
        attempt += 1;
        let random = RandomState::new().build_hasher().finish();
        let temporary = path.with_file_name(format!("{start}.{random:016x}{EXTENSION}"));
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists && attempt < MAX_ATTEMPTS => {}
            result => return Ok((temporary, result?)),
        }
    }
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
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn temporary_file_replaces_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let part = folder.path().join("a.part");
        fs::write(&part, "mine").unwrap();
        // Two files that differ in their extension only are written at the same time.
        let [html, markdown] = ["a.html", "a.md"].map(|name| folder.path().join(name));
        let inner = std::iter::once_with(|| write_atomic(&markdown, b"text").map(|()| "page"));
        write_chunks_atomic(&html, inner).unwrap();
        let texts = [&part, &html, &markdown].map(|path| fs::read_to_string(path).unwrap());
        assert_eq!(texts, ["mine", "page", "text"]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
        let long = folder.path().join("é".repeat(120));
        write_atomic(&long, b"x").unwrap();
    }

    #[test]
    fn only_own_temporary_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let kept = ["a.part", "a.0123456789abcdez.part", "0123456789abcdef.part", "a"];
        for name in kept.iter().chain(&["a.0123456789abcdef.part"]) {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        remove_temporary_files(folder.path()).unwrap();
        let mut names = list_names(folder.path()).unwrap();
        names.sort();
        let mut kept = kept;
        kept.sort_unstable();
        assert_eq!(names, kept);
        // The name of a temporary file is recognised.
        let (temporary, _) = create_temporary(&folder.path().join("b.html")).unwrap();
        assert!(is_temporary_name(&temporary.file_name().unwrap().to_string_lossy()));
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_stay_and_sockets_are_rejected() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let [file, link, broken] = ["a", "link", "broken"].map(|name| folder.path().join(name));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        symlink("a", &link).unwrap();
        write_atomic(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        symlink("missing", &broken).unwrap();
        assert!(write_atomic(&broken, b"x").is_err());
        assert!(broken.is_symlink());
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let error = format!("{:#}", write_atomic(&socket, b"x").unwrap_err());
        assert!(error.contains("expected a file"), "{error}");
        assert!(!socket.metadata().unwrap().is_file());
    }
}
