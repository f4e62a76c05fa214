//! Downloads of one command. Each repository is downloaded once.

use std::path::PathBuf;

use super::args::HubArgs;
use super::error::HubError;
use super::resolve::snapshot_by_id;
use super::snapshot::{HubSource, Snapshot};
use crate::checkpoints::file_filter::FileFilter;

/// Snapshots of one command, recorded in its manifest.
#[derive(Clone, Debug, Default)]
pub struct HubDownloads {
    /// Settings of the downloads; `None` if the hub is never contacted.
    access: Option<HubAccess>,
    snapshots: Vec<(String, FileFilter, Snapshot)>,
}

/// Settings of the downloads of a command.
#[derive(Clone, Copy, Debug)]
struct HubAccess {
    flags: HubArgs,
    /// True to hide the progress bar and the notes.
    quiet: bool,
}

impl HubDownloads {
    /// Creates an empty list of snapshots. `quiet` hides the progress bar and the notes.
    pub fn new(flags: HubArgs, quiet: bool) -> Self {
        Self { access: Some(HubAccess { flags, quiet }), snapshots: Vec::new() }
    }

    /// Downloads the files that the filter selects from the repository `owner/name[@revision]`.
    /// Returns their folder, or `None` if `id` does not look like a hub id or the hub is never
    /// contacted.
    ///
    /// # Errors
    ///
    /// See [`HubErrorKind`](super::HubErrorKind).
    pub fn download(&mut self, id: &str, filter: &FileFilter) -> Result<Option<PathBuf>, HubError> {
        let Some(HubAccess { flags, quiet }) = self.access else {
            return Ok(None);
        };
        let mut known = self.snapshots.iter();
        if let Some((_, _, snapshot)) =
            known.find(|(name, known_filter, _)| name == id && known_filter == filter)
        {
            return Ok(Some(snapshot.folder.clone()));
        }
        let Some(snapshot) = snapshot_by_id(id, filter, flags, quiet)? else {
            return Ok(None);
        };
        let folder = snapshot.folder.clone();
        self.snapshots.push((id.to_owned(), filter.clone(), snapshot));
        Ok(Some(folder))
    }

    /// Returns the origins of the snapshots, in order.
    pub fn sources(&self) -> Vec<HubSource> {
        let sources = self.snapshots.iter().map(|(_, _, snapshot)| snapshot.source.clone());
        sources.collect()
    }
}
