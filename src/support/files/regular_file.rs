//! Opens input files, but only regular ones.
//!
//! Opening a pipe blocks until another process writes to it, and a device may never end. Checking
//! the file type first keeps the program from hanging.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Error for a pipe, a socket or a device.
const NOT_A_FILE: &str = "not a file\nhint: expected a regular file, not a pipe or device; \
                          write its content to a file first";

/// Opens a regular file for reading.
///
/// # Errors
///
/// I/O errors, and `InvalidInput` for a pipe, a socket or a device.
pub fn open(path: &Path) -> io::Result<File> {
    check_regular(path)?;
    File::open(path)
}

/// Reads a regular file.
///
/// # Errors
///
/// As [`open`], or the file cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    check_regular(path)?;
    fs::read(path)
}

/// Reads a regular file as text.
///
/// # Errors
///
/// As [`open`], or the file cannot be read or is not UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    check_regular(path)?;
    fs::read_to_string(path)
}

/// Checks that a path is a regular file, without opening it.
///
/// # Errors
///
/// As [`open`].
pub fn check_regular(path: &Path) -> io::Result<()> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_dir() {
        Err(io::ErrorKind::IsADirectory.into())
    } else if kind.is_file() && !is_in_kernel_folder(path) {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, NOT_A_FILE))
    }
}

/// Returns true for files of Linux that are no files on a disk: reading one may not end, or reveal
/// the environment of the process.
fn is_in_kernel_folder(path: &Path) -> bool {
    let in_folder = |path: &Path| ["/proc", "/sys"].iter().any(|folder| path.starts_with(folder));
    // The open file of another program, for example of a shell's `<(…)`, is a pipe or a real file.
    cfg!(target_os = "linux") && path.canonicalize().is_ok_and(|path| in_folder(&path))
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use super::*;

    #[cfg(unix)]
    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "x").unwrap();
        assert!(open(&path).is_ok());
        let kind = |path: &Path| open(path).unwrap_err().kind();
        assert_eq!(kind(dir.path()), io::ErrorKind::IsADirectory);
        assert_eq!(kind(&dir.path().join("b")), io::ErrorKind::NotFound);
        let error = open(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.starts_with("not a file\nhint: "), "{error}");
        // A link to a stream is a stream.
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        assert_eq!(read(&link).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(read_to_string(&link).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(read_to_string(&path).unwrap(), "x");
    }
}
