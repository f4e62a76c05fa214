//! The cache of one repository, in the layout of the Python tools (reference: `huggingface_hub`,
//! `file_download.py`).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::error::HubError;
use super::id::is_commit;
use super::{HubSettings, RepoRef};

/// Content of a file that tells backup programs to skip its folder
/// (<https://bford.info/cachedir/>).
const CACHEDIR_TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n";

/// Folder of the file lists, one per commit. The Python tools have their own lists in `trees`, with
/// more fields.
const LISTINGS: &str = "listings";

/// Cache of one repository.
#[derive(Debug)]
pub(super) struct RepoCache {
    root: PathBuf,
    name: String,
    symlinks: bool,
}

impl RepoCache {
    /// Creates the cache of a repository, without creating folders.
    pub(super) fn new(settings: &HubSettings, repo: &RepoRef) -> Self {
        Self {
            root: settings.cache.clone(),
            name: format!("models--{}", repo.id().replace('/', "--")),
            symlinks: settings.symlinks,
        }
    }

    /// Returns the folder of all repositories.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Creates the folders that downloads need.
    pub(super) fn create(&self) -> Result<(), HubError> {
        create_dir(&self.repo_folder("blobs"))?;
        let tag = self.root.join("CACHEDIR.TAG");
        if !tag.exists() {
            // The cache works without this file.
            let _ = fs::write(tag, CACHEDIR_TAG);
        }
        Ok(())
    }

    /// Returns the commit of a branch or tag at its last download.
    pub(super) fn cached_commit(&self, revision: &str) -> Option<String> {
        if is_commit(revision) {
            return Some(revision.to_owned());
        }
        let text = fs::read_to_string(self.repo_folder("refs").join(revision)).ok()?;
        Some(text.trim().to_owned()).filter(|commit| is_commit(commit))
    }

    /// Stores the commit of a branch or tag.
    pub(super) fn write_ref(&self, revision: &str, commit: &str) -> Result<(), HubError> {
        if self.cached_commit(revision).as_deref() == Some(commit) {
            return Ok(());
        }
        write(&self.repo_folder("refs").join(revision), commit.as_bytes())
    }

    /// Reads the list of all files of a commit, written by acem3 or by the Python tools.
    pub(super) fn read_listing(&self, commit: &str) -> Option<Vec<String>> {
        let stored =
            |folder: &str| fs::read(self.repo_folder(folder).join(format!("{commit}.json"))).ok();
        let json = stored(LISTINGS).or_else(|| stored("trees"))?;
        let json: Value = serde_json::from_slice(&json).ok()?;
        let names: Vec<String> = json.get("files")?.as_object()?.keys().cloned().collect();
        names.iter().all(|name| is_safe_path(name)).then_some(names)
    }

    /// Stores the list of all files of a commit.
    pub(super) fn write_listing(&self, commit: &str, names: &[String]) -> Result<(), HubError> {
        let path = self.repo_folder(LISTINGS).join(format!("{commit}.json"));
        if path.exists() {
            return Ok(());
        }
        let files: Map<_, _> = names.iter().map(|name| (name.clone(), json!({}))).collect();
        write(&path, json!({"files": files}).to_string().as_bytes())
    }

    /// Returns the folder of a commit's files.
    pub(super) fn snapshot_folder(&self, commit: &str) -> PathBuf {
        self.repo_folder("snapshots").join(commit)
    }

    /// Returns true if the cache contains a file of a commit, including its blob.
    pub(super) fn has_file(&self, commit: &str, name: &str) -> bool {
        self.snapshot_folder(commit).join(name).is_file()
    }

    /// Lists the cached files of a commit.
    pub(super) fn list_files(&self, commit: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![(self.snapshot_folder(commit), String::new())];
        while let Some((folder, prefix)) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
                // Symlinks to folders are not followed.
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push((entry.path(), name + "/"));
                } else if entry.path().is_file() {
                    found.push(name);
                }
            }
        }
        found.sort();
        found
    }

    /// Returns the path of a blob.
    pub(super) fn blob_path(&self, hash: &str) -> PathBuf {
        self.repo_folder("blobs").join(hash)
    }

    /// Returns the path of a blob during its download.
    pub(super) fn incomplete_path(&self, hash: &str) -> PathBuf {
        self.repo_folder("blobs").join(format!("{hash}.incomplete"))
    }

    /// Locks a blob for this process until the returned file is dropped. Calls `on_wait` once if
    /// another process has the lock. The Python tools use the same lock (`filelock`, which calls
    /// `flock` on Unix).
    pub(super) fn lock(&self, hash: &str, on_wait: impl Fn()) -> Result<File, HubError> {
        let folder = self.root.join(".locks").join(&self.name);
        create_dir(&folder)?;
        let path = folder.join(format!("{hash}.lock"));
        let disk_error = |error| HubError::disk(&path, &error);
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false);
        let file = options.open(&path).map_err(disk_error)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                on_wait();
                file.lock().map_err(disk_error)?;
            }
            // Some file systems do not support locks. The hash of the blob then detects concurrent
            // writes.
            Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => {
                return Err(disk_error(error));
            }
            _ => {}
        }
        Ok(file)
    }

    /// Links a file of a commit to its blob, or copies the blob if symlinks do not work.
    pub(super) fn link_file(&self, commit: &str, name: &str, hash: &str) -> Result<(), HubError> {
        let path = self.snapshot_folder(commit).join(name);
        if path.is_file() {
            return Ok(());
        }
        create_dir(path.parent().unwrap_or(&path))?;
        let up = "../".repeat(2 + name.matches('/').count());
        let target = format!("{up}blobs/{hash}");
        write_then_rename(&path, |temporary| {
            if self.symlinks && symlink(&target, temporary).is_ok() && temporary.is_file() {
                return Ok(());
            }
            let _ = fs::remove_file(temporary);
            fs::copy(self.blob_path(hash), temporary).map(|_| ())
        })
    }

    fn repo_folder(&self, folder: &str) -> PathBuf {
        self.root.join(&self.name).join(folder)
    }
}

/// Maximum bytes of a path from the hub.
const MAX_PATH_BYTES: usize = 1000;

/// Returns true if a path from the hub cannot leave the folder that it is joined to, on every
/// operating system, and has no control characters, which a terminal could run.
pub(super) fn is_safe_path(name: &str) -> bool {
    let is_part = |part: &str| !matches!(part, "" | "." | "..");
    name.len() <= MAX_PATH_BYTES
        && !name.contains(['\\', ':'])
        && !name.contains(char::is_control)
        && name.split('/').all(is_part)
}

fn create_dir(folder: &Path) -> Result<(), HubError> {
    fs::create_dir_all(folder).map_err(|error| HubError::disk(folder, &error))
}

/// Writes a small file atomically.
fn write(path: &Path, bytes: &[u8]) -> Result<(), HubError> {
    create_dir(path.parent().unwrap_or(path))?;
    write_then_rename(path, |temporary| {
        let mut file = File::create(temporary)?;
        file.write_all(bytes)?;
        file.sync_data()
    })
}

/// Creates a file atomically: `create` writes to a temporary path next to `path`, which is then
/// renamed. The temporary name contains the process id.
fn write_then_rename(
    path: &Path,
    create: impl Fn(&Path) -> io::Result<()>,
) -> Result<(), HubError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let _ = fs::remove_file(&temporary);
    create(&temporary).and_then(|()| fs::rename(&temporary, path)).map_err(|error| {
        let _ = fs::remove_file(&temporary);
        HubError::disk(path, &error)
    })
}

#[cfg(unix)]
fn symlink(target: &str, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
fn symlink(target: &str, link: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(target.replace('/', "\\"), link)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn second_process_waits_for_lock() {
        let dir = tempfile::tempdir().unwrap();
        let cache = RepoCache { root: dir.path().to_owned(), name: "a".to_owned(), symlinks: true };
        let (first_done, waited) = (AtomicBool::new(false), AtomicBool::new(false));
        let first = cache.lock("b", || panic!("the lock is free")).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let on_wait = || waited.store(true, Ordering::SeqCst);
                let _second = cache.lock("b", on_wait).unwrap();
                assert!(first_done.load(Ordering::SeqCst));
            });
            while !waited.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            first_done.store(true, Ordering::SeqCst);
            drop(first);
        });
    }

    #[test]
    fn path_traversal_is_rejected() {
        for name in ["a", "a/b.c", "..a"] {
            assert!(is_safe_path(name), "{name}");
        }
        for name in
            ["../x", "/x", "a/../../x", "a//b", "", "./a", "C:\\x", "a\\..\\b", "a/", "a\u{1b}[2J"]
        {
            assert!(!is_safe_path(name), "{name}");
        }
    }

    #[test]
    fn own_and_python_file_lists_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let cache = RepoCache { root: dir.path().to_owned(), name: "a".to_owned(), symlinks: true };
        assert_eq!(cache.read_listing("1"), None);
        let names = ["b", "c/d"].map(str::to_owned).to_vec();
        cache.write_listing("1", &names).unwrap();
        assert_eq!(cache.read_listing("1"), Some(names));
        let tree = r#"{"format_version": 1, "files": {"x": {"size": 7, "blob_id": "0"}}}"#;
        write(&dir.path().join("a/trees/2.json"), tree.as_bytes()).unwrap();
        assert_eq!(cache.read_listing("2"), Some(vec!["x".to_owned()]));
        write(&dir.path().join("a/trees/3.json"), br#"{"files": {"../x": {}}}"#).unwrap();
        assert_eq!(cache.read_listing("3"), None);
    }
}
