//! Snapshot of a repository: a local folder with files of one commit.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::{Deserialize, Serialize};

use super::cache::{RepoCache, is_safe_path};
use super::client::HubClient;
use super::download::Downloader;
use super::error::HubError;
use super::error::HubErrorKind::{BadResponse, MissingFile, NotCached, Unavailable, Unreachable};
use super::id::is_commit;
use super::remote_file::RemoteFile;
use super::{HubSettings, RepoRef};
use crate::checkpoints::file_filter::FileFilter;
use crate::support::terminal::progress::print_lines;

/// Client of a hub with a local cache.
#[derive(Debug)]
pub struct Hub {
    settings: HubSettings,
    quiet: bool,
}

/// Folder with files of a repository, and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The folder, in the cache.
    pub folder: PathBuf,
    /// The origin, for `run.json`.
    pub source: HubSource,
}

/// Origin of files from the hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubSource {
    /// `owner/name`.
    pub id: String,
    /// The branch, tag or commit that the user passed.
    pub revision: String,
    /// The commit of the revision.
    pub commit: String,
}

impl Hub {
    /// Creates a client. `quiet` hides the progress bar and the notes.
    pub fn new(settings: HubSettings, quiet: bool) -> Self {
        Self { settings, quiet }
    }

    /// Returns the snapshot of a repository with the files that the filter selects. Downloads
    /// missing files. If the hub is unavailable, uses a complete snapshot from the cache.
    ///
    /// # Errors
    ///
    /// See [`HubErrorKind`](super::HubErrorKind).
    pub fn snapshot(&self, repo: &RepoRef, filter: &FileFilter) -> Result<Snapshot, HubError> {
        let cache = RepoCache::new(&self.settings, repo);
        if let Some(setting) = self.settings.offline {
            return cached_snapshot(&cache, repo, filter)?.ok_or_else(|| {
                let why = format!(", and {setting} forbids access to the hub");
                let hint = format!("run the same command once without {setting}, or pass a folder");
                not_cached_error(&cache, &repo.to_string(), &why, &hint)
            });
        }
        let client = HubClient::new(&self.settings, repo)?;
        let stored = Some(repo.revision()).filter(|revision| is_commit(revision));
        let stored =
            stored.and_then(|commit| Some((commit.to_owned(), cache.read_listing(commit)?)));
        let (commit, names) = match stored.map_or_else(|| client.list_files(), Ok) {
            Ok(found) => found,
            Err(error) if matches!(error.kind, Unavailable | Unreachable) => {
                let Ok(Some(found)) = cached_snapshot(&cache, repo, filter) else {
                    return Err(error);
                };
                let commit = &found.source.commit;
                let failure = error.message();
                self.note(&format!("{failure}; using the cached commit {commit}"));
                return Ok(found);
            }
            Err(error) => return Err(error),
        };
        if let Some(name) = names.iter().find(|name| !is_safe_path(name)) {
            let start: String = name.chars().take(80).collect();
            let why = format!("the hub lists a file outside of the repository: `{start}`");
            return Err(HubError::bad_response(repo.id(), &why));
        }
        let mut missing = select_files(repo, filter, &names)?;
        missing.retain(|name| !cache.has_file(&commit, name));
        if missing.is_empty() {
            // A complete cache may be read-only.
            let _ = cache.write_listing(&commit, &names);
            let _ = cache.write_ref(repo.revision(), &commit);
        } else {
            cache.create()?;
            cache.write_listing(&commit, &names)?;
            let download = Downloader {
                client: &client,
                cache: &cache,
                commit: &commit,
                bar: self.progress_bar(),
            };
            self.download(&download, &missing)?;
            cache.write_ref(repo.revision(), &commit)?;
        }
        Ok(build_snapshot(&cache, repo, commit))
    }

    /// Downloads files. Links them into the snapshot after all are complete.
    fn download(&self, download: &Downloader, names: &[String]) -> Result<(), HubError> {
        let (bar, commit) = (&download.bar, download.commit);
        let remote_file = |name: &String| download.client.remote_file(commit, name);
        let files: Vec<RemoteFile> = names.iter().map(remote_file).collect::<Result<_, _>>()?;
        bar.set_length(files.iter().map(|file| file.size).sum());
        let result = files.iter().try_for_each(|file| {
            let name = &file.name;
            bar.set_message(name.clone());
            let text = format!("{name}: waiting for the download of another process");
            download.fetch(file, || bar.suspend(|| self.note(&text)))
        });
        bar.finish_and_clear();
        result?;
        let mut files = files.iter();
        files.try_for_each(|file| download.cache.link_file(commit, &file.name, file.hash.hex()))
    }

    fn progress_bar(&self) -> ProgressBar {
        let target = if !self.quiet && io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        let template = "{bar:32} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left, {msg}";
        match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }

    fn note(&self, text: &str) {
        if !self.quiet {
            print_lines(text);
        }
    }
}

/// Returns the snapshot from the cache, or `None` if the cache does not contain the revision. A
/// missing file is an error.
fn cached_snapshot(
    cache: &RepoCache,
    repo: &RepoRef,
    filter: &FileFilter,
) -> Result<Option<Snapshot>, HubError> {
    let Some(commit) = cache.cached_commit(repo.revision()) else {
        return Ok(None);
    };
    let present = cache.list_files(&commit);
    if present.is_empty() {
        return Ok(None);
    }
    let incomplete = |file: &str| {
        let hint =
            "run the same command once with access to the hub; only missing files are downloaded";
        not_cached_error(cache, &format!("{repo}: {file}"), "", hint)
    };
    let selected = match cache.read_listing(&commit) {
        Some(names) => select_files(repo, filter, &names)?,
        // Without a list of all files, selects from the cached ones.
        None => filter.select(&present).map_err(|missing| incomplete(&missing.file))?,
    };
    match selected.iter().find(|name| !cache.has_file(&commit, name)) {
        Some(missing) => Err(incomplete(missing)),
        None => Ok(Some(build_snapshot(cache, repo, commit))),
    }
}

/// Maximum number of files of a snapshot. A request asks for the size of each.
const MAX_FILES: usize = 1000;

fn not_cached_error(cache: &RepoCache, what: &str, why: &str, hint: &str) -> HubError {
    let root = cache.root().display();
    HubError::new(NotCached, format!("{what} is not in the cache {root}{why}"), hint)
}

fn select_files(
    repo: &RepoRef,
    filter: &FileFilter,
    names: &[String],
) -> Result<Vec<String>, HubError> {
    let selected = filter.select(names).map_err(|missing| {
        let (id, revision, file) = (repo.id(), repo.revision(), missing.file);
        let message = format!("{id}: no file {file} at {revision}");
        HubError::new(MissingFile, message, &missing.hint)
    })?;
    if selected.len() > MAX_FILES {
        let (id, n) = (repo.id(), selected.len());
        let message = format!("{id}: {n} files to download, the limit is {MAX_FILES}");
        return Err(HubError::new(BadResponse, message, "check the name of the repository"));
    }
    Ok(selected)
}

fn build_snapshot(cache: &RepoCache, repo: &RepoRef, commit: String) -> Snapshot {
    Snapshot {
        folder: cache.snapshot_folder(&commit),
        source: HubSource {
            id: repo.id().to_owned(),
            revision: repo.revision().to_owned(),
            commit,
        },
    }
}
