//! The folders of the cache, in the layout of the Python tools (reference: `huggingface_hub`,
//! `file_download.py`).

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::id::is_commit;
use super::tree::Tree;
use super::{HubError, RepoRef, Settings};

/// What a folder needs so that backup programs pass it over.
const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n\
                   # This file is a cache directory tag created by acem3.\n\
                   # For information about cache directory tags, see https://bford.info/cachedir/\n";

/// The part of the cache that belongs to a repository.
#[derive(Debug)]
pub(super) struct Cache {
    root: PathBuf,
    folder: PathBuf,
    locks: PathBuf,
    symlinks: bool,
}

impl Cache {
    /// The part of a repository; nothing is made yet.
    pub(super) fn of(settings: &Settings, repo: &RepoRef) -> Self {
        let root = settings.cache.clone();
        Self {
            folder: root.join(repo.folder()),
            locks: root.join(".locks").join(repo.folder()),
            symlinks: settings.symlinks,
            root,
        }
    }

    /// The whole cache.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the folders that downloads need.
    pub(super) fn make(&self) -> Result<(), HubError> {
        make(&self.folder.join("blobs"))?;
        let tag = self.root.join("CACHEDIR.TAG");
        if !tag.exists() {
            // A cache without it is a cache all the same.
            let _ = fs::write(tag, TAG);
        }
        Ok(())
    }

    /// The commit that a branch or tag stood at when it was last asked for.
    pub(super) fn commit_of(&self, revision: &str) -> Option<String> {
        if is_commit(revision) {
            return Some(revision.to_owned());
        }
        let text = fs::read_to_string(self.reference(revision)).ok()?;
        let commit = text.trim();
        is_commit(commit).then(|| commit.to_owned())
    }

    /// Notes the commit of a branch or tag.
    pub(super) fn set_reference(&self, revision: &str, commit: &str) -> Result<(), HubError> {
        let known = self.commit_of(revision);
        if known.as_deref() == Some(commit) {
            return Ok(());
        }
        write(&self.reference(revision), commit.as_bytes())
    }

    /// The list of files of a commit, if it was kept.
    pub(super) fn tree(&self, commit: &str) -> Option<Tree> {
        Tree::parse(&fs::read(self.tree_file(commit)).ok()?)
    }

    /// Keeps the list of files of a commit, as far as the hub told enough.
    pub(super) fn keep_tree(&self, commit: &str, tree: &Tree) -> Result<(), HubError> {
        let path = self.tree_file(commit);
        match tree.cached() {
            Some(text) if !path.exists() => write(&path, text.as_bytes()),
            _ => Ok(()),
        }
    }

    /// The folder of a commit's files.
    pub(super) fn snapshot(&self, commit: &str) -> PathBuf {
        self.folder.join("snapshots").join(commit)
    }

    /// Whether a file of a commit is there, behind its link too.
    pub(super) fn has(&self, commit: &str, name: &str) -> bool {
        self.snapshot(commit).join(name).is_file()
    }

    /// The files of a commit that are there, by their paths.
    pub(super) fn files(&self, commit: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![(self.snapshot(commit), String::new())];
        while let Some((folder, lead)) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let name = format!("{lead}{}", entry.file_name().to_string_lossy());
                // A link counts as what it leads to, but folders are never links here.
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

    /// The place of a content.
    pub(super) fn blob(&self, hash: &str) -> PathBuf {
        self.folder.join("blobs").join(hash)
    }

    /// The place of a content on its way.
    pub(super) fn incomplete(&self, hash: &str) -> PathBuf {
        self.folder.join("blobs").join(format!("{hash}.incomplete"))
    }

    /// The lock of a content.
    pub(super) fn lock(&self, hash: &str) -> PathBuf {
        self.locks.join(format!("{hash}.lock"))
    }

    /// Gives a content its name in a commit: a relative link, or a copy where there are none.
    pub(super) fn link(&self, commit: &str, name: &str, hash: &str) -> Result<(), HubError> {
        let path = self.snapshot(commit).join(name);
        if path.is_file() {
            return Ok(());
        }
        let folder = path.parent().unwrap_or(&path);
        make(folder)?;
        let fresh = beside(&path);
        let up = "../".repeat(2 + name.matches('/').count());
        let target = format!("{up}blobs/{hash}");
        // What an earlier end of this very process left.
        let _ = fs::remove_file(&fresh);
        let linked = self.symlinks && symlink(&target, &fresh).is_ok() && fresh.is_file();
        let placed = if linked {
            Ok(())
        } else {
            let _ = fs::remove_file(&fresh);
            fs::copy(self.blob(hash), &fresh).map(|_| ())
        };
        let placed = placed.and_then(|()| fs::rename(&fresh, &path));
        placed.map_err(|error| {
            let _ = fs::remove_file(&fresh);
            HubError::disk(&path, "cannot be made", error)
        })
    }

    fn reference(&self, revision: &str) -> PathBuf {
        self.folder.join("refs").join(revision)
    }

    fn tree_file(&self, commit: &str) -> PathBuf {
        self.folder.join("trees").join(format!("{commit}.json"))
    }
}

#[cfg(unix)]
fn symlink(target: &str, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
fn symlink(target: &str, link: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(target.replace('/', "\\"), link)
}

#[cfg(not(any(unix, windows)))]
fn symlink(_: &str, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn make(folder: &Path) -> Result<(), HubError> {
    fs::create_dir_all(folder).map_err(|error| HubError::disk(folder, "cannot be made", error))
}

/// A name in the same folder that no other process uses.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}

/// Writes a small file; a reader sees the old one or the new one, whole.
fn write(path: &Path, bytes: &[u8]) -> Result<(), HubError> {
    make(path.parent().unwrap_or(path))?;
    let fresh = beside(path);
    let attempt = || {
        let mut file = fs::File::create(&fresh)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&fresh, path)
    };
    attempt().map_err(|error| {
        let _ = fs::remove_file(&fresh);
        HubError::disk(path, "cannot be written", error)
    })
}
