//! Where a model is: a folder, or a checkpoint on the hub.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use crate::checkpoints::file_filter::FileFilter;
use crate::checkpoints::hub;
use crate::checkpoints::hub::{HubFlags, HubStamp};
use crate::checkpoints::published;
use crate::checkpoints::store::weight_files::Checkpoint;
use crate::support::device::Placement;

const CONFIG: &str = "config.json";

/// A checkpoint of transformers.
pub(crate) struct ModelSource {
    /// As it was asked for.
    pub(crate) name: String,
    /// Where its files are.
    pub(crate) folder: PathBuf,
    /// Where on the hub it was taken from.
    pub(crate) hub: Option<HubStamp>,
}

impl ModelSource {
    /// The folder or hub id that a flag names, downloaded where it was not before.
    pub(crate) fn open(flag: &str, name: &str, flags: HubFlags, quiet: bool) -> Result<Self> {
        let found = hub::snapshot_unless_path(name, &FileFilter::Panel, flags, quiet);
        let found = found.with_context(|| format!("{flag} {name}: cannot be had"))?;
        let (folder, hub) = match found {
            Some(snapshot) => (snapshot.folder, Some(snapshot.stamp)),
            None => (PathBuf::from(name), None),
        };
        if !folder.join(CONFIG).is_file() {
            bail!(
                "{flag} {name}: there is no {CONFIG} in it\n\
                 hint: name the folder of a checkpoint of transformers, or owner/name[@revision] on the hub"
            );
        }
        Ok(Self {
            name: name.split('@').next().unwrap_or(name).to_owned(),
            folder,
            hub,
        })
    }

    /// Its name, with the commit where it comes from the hub.
    pub(crate) fn described(&self) -> String {
        match &self.hub {
            Some(stamp) => format!("{} at {}", self.name, stamp.commit),
            None => self.name.clone(),
        }
    }

    /// Its configuration.
    pub(super) fn config<T>(&self, parse: impl Fn(Map<String, Value>) -> Result<T>) -> Result<T> {
        let path = self.folder.join(CONFIG);
        let read = published::config_json::json(&path).and_then(parse);
        read.with_context(|| path.display().to_string())
    }

    /// Its weights.
    pub(super) fn weights(
        &self,
        kind: &str,
        place: &Placement,
        rename: impl Fn(&str) -> Option<String>,
    ) -> Result<Checkpoint> {
        published::checkpoint(&self.folder, kind, place, rename)
    }

    /// A file of it, where there is one.
    pub(super) fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.folder.join(name)).filter(|path| Path::is_file(path))
    }
}
