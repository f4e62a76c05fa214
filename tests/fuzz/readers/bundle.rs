//! Folder of the files in one input.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

/// Line between two files of an input.
const SEPARATOR: &[u8] = b"\n%%%%\n";

/// A temporary folder with files.
pub(super) struct Bundle {
    folder: TempDir,
}

impl Bundle {
    /// Creates a folder. The memory of a temporary folder on a disk would limit the speed, so set
    /// `TMPDIR` to a folder in memory.
    pub(super) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// Creates a folder with one file.
    pub(super) fn of_file(name: &str, bytes: &[u8]) -> Self {
        Self::new().with_file(name, bytes)
    }

    /// Creates a folder with the files of an input, under these names. An empty or missing part is
    /// no file.
    pub(super) fn of_parts(names: &[&str], bytes: &[u8]) -> Self {
        let mut bundle = Self::new();
        let mut rest = bytes;
        for name in names {
            let end = rest.windows(SEPARATOR.len()).position(|window| window == SEPARATOR);
            let (part, next) = match end {
                Some(end) => (&rest[..end], &rest[end + SEPARATOR.len()..]),
                None => (rest, &[][..]),
            };
            if !part.is_empty() {
                bundle = bundle.with_file(name, part);
            }
            rest = next;
        }
        bundle
    }

    /// Adds a file.
    pub(super) fn with_file(self, name: &str, bytes: &[u8]) -> Self {
        fs::write(self.folder.path().join(name), bytes).unwrap();
        self
    }

    /// Adds copies of files of the folder `assets/golden` to a folder inside. An empty name is the
    /// folder itself.
    pub(super) fn with_golden(self, golden: &str, files: &[&str], target: &str) -> Self {
        // The crate of the fuzz targets is in a folder of the repository.
        let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
        let root = folders.find(|folder| folder.join("assets/golden").is_dir()).unwrap();
        let target = self.folder.path().join(target);
        fs::create_dir_all(&target).unwrap();
        for file in files {
            let source = root.join("assets/golden").join(golden).join(file);
            fs::copy(source, target.join(file)).unwrap();
        }
        self
    }

    /// Returns the path of the folder.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Passes the path of a file to a function.
    pub(super) fn read<T>(&self, name: &str, read: impl FnOnce(&Path) -> T) -> T {
        read(&self.folder.path().join(name))
    }
}
