//! What one command takes from the hub: each repository once, with a note of where it stood.

use std::path::PathBuf;

use super::{HubError, HubFlags, HubStamp, Snapshot, Wanted, resembling};

/// Repositories as folders on this machine.
#[derive(Clone, Debug, Default)]
pub struct Downloads {
    /// How the hub is asked, and whether without a word; by default it is never asked.
    asks: Option<(HubFlags, bool)>,
    taken: Vec<(String, Wanted, Snapshot)>,
}

impl Downloads {
    /// Nothing taken yet. `quiet` takes the bar and the notes away.
    pub fn new(flags: HubFlags, quiet: bool) -> Self {
        Self {
            asks: Some((flags, quiet)),
            taken: Vec::new(),
        }
    }

    /// The folder of the repository of this id, `owner/name[@revision]`, with the files that are wanted.
    /// `None` where the text cannot be an id, or the hub is never asked.
    ///
    /// # Errors
    ///
    /// Everything that keeps the files from being there and whole; see [`HubError`].
    pub fn folder(&mut self, id: &str, wanted: &Wanted) -> Result<Option<PathBuf>, HubError> {
        let Some((flags, quiet)) = self.asks else {
            return Ok(None);
        };
        let before = self.taken.iter();
        let mut before = before.filter(|(name, what, _)| name == id && what == wanted);
        if let Some((_, _, snapshot)) = before.next() {
            return Ok(Some(snapshot.folder.clone()));
        }
        let Some(snapshot) = resembling(id, wanted, flags, quiet)? else {
            return Ok(None);
        };
        let folder = snapshot.folder.clone();
        self.taken.push((id.to_owned(), wanted.clone(), snapshot));
        Ok(Some(folder))
    }

    /// What was taken, in order.
    pub fn stamps(&self) -> Vec<HubStamp> {
        let stamps = self.taken.iter().map(|(_, _, found)| found.stamp.clone());
        stamps.collect()
    }
}
