//! From the text of a flag to a snapshot: a path, or the id of a repository.

use std::path::Path;

use super::args::HubArgs;
use super::error::HubError;
use super::id::RepoRef;
use super::settings::HubSettings;
use super::snapshot::{Hub, Snapshot};
use crate::checkpoints::file_filter::FileFilter;

/// Downloads the snapshot of a repository. Returns `None` if `text` is the path of an existing file
/// or folder, or does not look like a hub id.
///
/// # Errors
///
/// See [`HubErrorKind`](super::HubErrorKind).
pub fn snapshot_unless_path(
    text: &str,
    filter: &FileFilter,
    flags: HubArgs,
    quiet: bool,
) -> Result<Option<Snapshot>, HubError> {
    if Path::new(text).exists() {
        return Ok(None);
    }
    snapshot_by_id(text, filter, flags, quiet)
}

/// Downloads the snapshot of a repository. Returns `None` if `text` does not look like a hub id.
pub(super) fn snapshot_by_id(
    text: &str,
    filter: &FileFilter,
    flags: HubArgs,
    quiet: bool,
) -> Result<Option<Snapshot>, HubError> {
    if !RepoRef::looks_like_id(text) {
        return Ok(None);
    }
    let repo = RepoRef::parse(text)?;
    let hub = Hub::new(HubSettings::from_env(flags)?, quiet);
    hub.snapshot(&repo, filter).map(Some)
}
