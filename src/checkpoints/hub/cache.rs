//! The cache of one repository, in the layout of the Python tools (reference: `huggingface_hub`,
//! `file_download.py`).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::error::HubError;
use super::id::is_commit;
use super::{HubSettings, RepoRef};

/// Tells backup programs to skip a folder (<https://bford.info/cachedir/>).
const CACHEDIR_TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n";

/// The folder of the lists of files. The Python tools have their own, `trees`, with more than the names.
const LISTINGS: &str = "listings";

/// The part of the cache that belongs to one repository.
#[derive(Debug)]
pub(super) struct RepoCache {
    root: PathBuf,
    name: String,
    symlinks: bool,
}

impl RepoCache {
    /// The cache of a repository. Creates no folder.
    pub(super) fn new(settings: &HubSettings, repo: &RepoRef) -> Self {
        Self {
            root: settings.cache.clone(),
            name: format!("models--{}", repo.id().replace('/', "--")),
            symlinks: settings.symlinks,
        }
    }

    /// The folder of all repositories.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Creates the folders that downloads need.
    pub(super) fn create(&self) -> Result<(), HubError> {
        create_dir(&self.repo("blobs"))?;
        let tag = self.root.join("CACHEDIR.TAG");
        if !tag.exists() {
            // The cache works without it.
            let _ = fs::write(tag, CACHEDIR_TAG);
        }
        Ok(())
    }

    /// The commit of a branch or tag, as of its last download.
    pub(super) fn commit_of(&self, revision: &str) -> Option<String> {
        if is_commit(revision) {
            return Some(revision.to_owned());
        }
        let text = fs::read_to_string(self.repo("refs").join(revision)).ok()?;
        Some(text.trim().to_owned()).filter(|commit| is_commit(commit))
    }

    /// Stores the commit of a branch or tag.
    pub(super) fn write_ref(&self, revision: &str, commit: &str) -> Result<(), HubError> {
        if self.commit_of(revision).as_deref() == Some(commit) {
            return Ok(());
        }
        write(&self.repo("refs").join(revision), commit.as_bytes())
    }

    /// The stored list of all files of a commit: ours, or that of the Python tools.
    pub(super) fn listing(&self, commit: &str) -> Option<Vec<String>> {
        let stored = |folder: &str| fs::read(self.repo(folder).join(format!("{commit}.json"))).ok();
        let json = stored(LISTINGS).or_else(|| stored("trees"))?;
        let json: Value = serde_json::from_slice(&json).ok()?;
        let names: Vec<String> = json.get("files")?.as_object()?.keys().cloned().collect();
        names.iter().all(|name| is_inside(name)).then_some(names)
    }

    /// Stores the list of all files of a commit.
    pub(super) fn write_listing(&self, commit: &str, names: &[String]) -> Result<(), HubError> {
        let path = self.repo(LISTINGS).join(format!("{commit}.json"));
        if path.exists() {
            return Ok(());
        }
        let files: Map<_, _> = names.iter().map(|name| (name.clone(), json!({}))).collect();
        write(&path, json!({"files": files}).to_string().as_bytes())
    }

    /// The folder of a commit's files.
    pub(super) fn snapshot(&self, commit: &str) -> PathBuf {
        self.repo("snapshots").join(commit)
    }

    /// True if the cache has a file of a commit, and its content.
    pub(super) fn has(&self, commit: &str, name: &str) -> bool {
        self.snapshot(commit).join(name).is_file()
    }

    /// The files of a commit that the cache has.
    pub(super) fn files(&self, commit: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![(self.snapshot(commit), String::new())];
        while let Some((folder, prefix)) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
                // Links are followed to files only.
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

    /// The path of a content.
    pub(super) fn blob(&self, hash: &str) -> PathBuf {
        self.repo("blobs").join(hash)
    }

    /// The path of a content during its download.
    pub(super) fn incomplete(&self, hash: &str) -> PathBuf {
        self.repo("blobs").join(format!("{hash}.incomplete"))
    }

    /// Locks a content for this process until the file is dropped. Calls `on_wait` once if another process
    /// has the lock. The Python tools take the same lock (`filelock`, that is `flock` on Unix).
    pub(super) fn lock(&self, hash: &str, on_wait: impl Fn()) -> Result<File, HubError> {
        let folder = self.root.join(".locks").join(&self.name);
        create_dir(&folder)?;
        let path = folder.join(format!("{hash}.lock"));
        let failed = |error| HubError::disk(&path, &error);
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false);
        let file = options.open(&path).map_err(failed)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                on_wait();
                file.lock().map_err(failed)?;
            }
            // Some file systems have no locks; the hash then finds what two writers damage.
            Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => {
                return Err(failed(error));
            }
            _ => {}
        }
        Ok(file)
    }

    /// Links a file of a commit to its content, or copies the content where links do not work.
    pub(super) fn link(&self, commit: &str, name: &str, hash: &str) -> Result<(), HubError> {
        let path = self.snapshot(commit).join(name);
        if path.is_file() {
            return Ok(());
        }
        create_dir(path.parent().unwrap_or(&path))?;
        let up = "../".repeat(2 + name.matches('/').count());
        let target = format!("{up}blobs/{hash}");
        replace(&path, |fresh| {
            if self.symlinks && symlink(&target, fresh).is_ok() && fresh.is_file() {
                return Ok(());
            }
            let _ = fs::remove_file(fresh);
            fs::copy(self.blob(hash), fresh).map(|_| ())
        })
    }

    fn repo(&self, folder: &str) -> PathBuf {
        self.root.join(&self.name).join(folder)
    }
}

/// True if a path of the hub stays below the folder that it is joined to, on every system.
pub(super) fn is_inside(name: &str) -> bool {
    let is_part = |part: &str| !matches!(part, "" | "." | "..");
    !name.contains(['\\', ':', '\0']) && name.split('/').all(is_part)
}

fn create_dir(folder: &Path) -> Result<(), HubError> {
    fs::create_dir_all(folder).map_err(|error| HubError::disk(folder, &error))
}

/// Writes a small file. Readers see the old one or the new one, whole.
fn write(path: &Path, bytes: &[u8]) -> Result<(), HubError> {
    create_dir(path.parent().unwrap_or(path))?;
    replace(path, |fresh| {
        let mut file = File::create(fresh)?;
        file.write_all(bytes)?;
        file.sync_data()
    })
}

/// Makes a file beside `path` under a name of this process, and moves it there.
fn replace(path: &Path, make: impl Fn(&Path) -> io::Result<()>) -> Result<(), HubError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fresh = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let _ = fs::remove_file(&fresh);
    make(&fresh)
        .and_then(|()| fs::rename(&fresh, path))
        .map_err(|error| {
            let _ = fs::remove_file(&fresh);
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
    fn the_second_process_waits_for_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let cache = RepoCache {
            root: dir.path().to_owned(),
            name: "a".to_owned(),
            symlinks: true,
        };
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
    fn paths_outside_of_the_repository_are_refused() {
        for name in ["a", "a/b.c", "..a"] {
            assert!(is_inside(name), "{name}");
        }
        for name in [
            "../x",
            "/x",
            "a/../../x",
            "a//b",
            "",
            "./a",
            "C:\\x",
            "a\\..\\b",
            "a/",
        ] {
            assert!(!is_inside(name), "{name}");
        }
    }

    #[test]
    fn lists_of_files_are_read_in_both_forms() {
        let dir = tempfile::tempdir().unwrap();
        let cache = RepoCache {
            root: dir.path().to_owned(),
            name: "a".to_owned(),
            symlinks: true,
        };
        assert_eq!(cache.listing("1"), None);
        let names = ["b", "c/d"].map(str::to_owned).to_vec();
        cache.write_listing("1", &names).unwrap();
        assert_eq!(cache.listing("1"), Some(names));
        let tree = r#"{"format_version": 1, "files": {"x": {"size": 7, "blob_id": "0"}}}"#;
        write(&dir.path().join("a/trees/2.json"), tree.as_bytes()).unwrap();
        assert_eq!(cache.listing("2"), Some(vec!["x".to_owned()]));
        write(
            &dir.path().join("a/trees/3.json"),
            br#"{"files": {"../x": {}}}"#,
        )
        .unwrap();
        assert_eq!(cache.listing("3"), None);
    }
}
