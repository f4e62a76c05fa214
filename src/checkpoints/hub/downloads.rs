//! The repositories that one command downloads, each once.

use std::path::PathBuf;

use super::{HubArgs, HubError, HubSource, Snapshot, snapshot_of};
use crate::checkpoints::file_filter::FileFilter;

/// The snapshots of one command, for its manifest.
#[derive(Clone, Debug, Default)]
pub struct HubDownloads {
    /// The flags, and whether to hide progress; `None` never asks the hub.
    access: Option<(HubArgs, bool)>,
    snapshots: Vec<(String, FileFilter, Snapshot)>,
}

impl HubDownloads {
    /// No snapshots yet. `quiet` hides the progress bar and the notes.
    pub fn new(flags: HubArgs, quiet: bool) -> Self {
        Self {
            access: Some((flags, quiet)),
            snapshots: Vec::new(),
        }
    }

    /// The folder of the repository with this id, `owner/name[@revision]`, with the files that the filter selects.
    /// `None` if the text does not have the shape of an id, or the hub is never asked.
    ///
    /// # Errors
    ///
    /// See [`HubErrorKind`](super::HubErrorKind).
    pub fn folder(&mut self, id: &str, filter: &FileFilter) -> Result<Option<PathBuf>, HubError> {
        let Some((flags, quiet)) = self.access else {
            return Ok(None);
        };
        let mut known = self.snapshots.iter();
        if let Some((_, _, snapshot)) = known.find(|(name, what, _)| name == id && what == filter) {
            return Ok(Some(snapshot.folder.clone()));
        }
        let Some(snapshot) = snapshot_of(id, filter, flags, quiet)? else {
            return Ok(None);
        };
        let folder = snapshot.folder.clone();
        self.snapshots
            .push((id.to_owned(), filter.clone(), snapshot));
        Ok(Some(folder))
    }

    /// The origins of the snapshots, in order.
    pub fn stamps(&self) -> Vec<HubSource> {
        let stamps = self
            .snapshots
            .iter()
            .map(|(_, _, snapshot)| snapshot.stamp.clone());
        stamps.collect()
    }
}
