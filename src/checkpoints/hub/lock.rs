//! One process at a time downloads a file.
//!
//! The lock is an advisory one on a file of its own, the same that the Python tools take (`filelock`,
//! that is `flock` on Unix), and ends with the process that holds it, however that ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use super::HubError;

/// A lock that is held until it is dropped. On file systems that know no locks there is none; what
/// two writers then tear is found by its hash.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "the lock lives as long as the file")] File);

impl Lock {
    /// Takes the lock, and waits for it where another has it; `wait` is called once before.
    pub(super) fn take(path: &Path, wait: &dyn Fn()) -> Result<Self, HubError> {
        let failed = |error| HubError::disk(path, "cannot lock", error);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|error| HubError::disk(folder, "cannot be made", error))?;
        }
        let mut told = false;
        loop {
            let mut options = OpenOptions::new();
            let options = options.read(true).write(true).create(true).truncate(false);
            let file = options.open(path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    if !told {
                        wait();
                        told = true;
                    }
                    file.lock().map_err(failed)?;
                }
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // Who had it may have removed the file; then a third could lock a new one.
            if is_at(&file, path) {
                return Ok(Self(file));
            }
        }
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(ours), Ok(there)) = (file.metadata(), std::fs::metadata(path)) else {
        return false;
    };
    (ours.dev(), ours.ino()) == (there.dev(), there.ino())
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_second_waits_for_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b.lock");
        let (first_done, waited) = (AtomicBool::new(false), AtomicBool::new(false));
        let first = Lock::take(&path, &|| panic!("nobody has it")).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let wait = || waited.store(true, Ordering::SeqCst);
                let _second = Lock::take(&path, &wait).unwrap();
                assert!(first_done.load(Ordering::SeqCst));
            });
            while !waited.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            first_done.store(true, Ordering::SeqCst);
            drop(first);
        });
    }
}
