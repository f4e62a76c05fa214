//! Source of a model: a local folder or a checkpoint on the hub.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use crate::checkpoints::file_filter::FileFilter;
use crate::checkpoints::hub;
use crate::checkpoints::hub::{HubArgs, HubSource};
use crate::checkpoints::published;
use crate::checkpoints::store::weight_files::Checkpoint;
use crate::support::device::Placement;

const CONFIG_FILE: &str = "config.json";

/// A checkpoint in the layout of transformers.
pub(crate) struct ModelSource {
    /// Name given by the user, without the revision.
    pub(crate) name: String,
    /// Local folder of the files.
    pub(crate) folder: PathBuf,
    /// Origin on the hub, for downloaded checkpoints.
    pub(crate) hub: Option<HubSource>,
}

impl ModelSource {
    /// Opens the folder or hub id given by a flag; downloads a hub checkpoint that is not cached.
    /// `filter` selects the files to download.
    pub(crate) fn open(
        flag: &str,
        name: &str,
        filter: &FileFilter,
        hub_args: HubArgs,
        quiet: bool,
    ) -> Result<Self> {
        let snapshot = hub::snapshot_unless_path(name, filter, hub_args, quiet);
        let snapshot = snapshot.with_context(|| format!("{flag} {name}: could not be loaded"))?;
        let (folder, hub) = match snapshot {
            Some(snapshot) => (snapshot.folder, Some(snapshot.source)),
            None => (PathBuf::from(name), None),
        };
        if !folder.is_dir() {
            bail!(
                "{flag} {name}: no such folder\n\
                 hint: pass a transformers checkpoint: a folder, or owner/name[@revision] on the hub"
            );
        }
        if !folder.join(CONFIG_FILE).is_file() {
            bail!(
                "{flag} {name}: no {CONFIG_FILE} in the folder\n\
                 hint: pass a transformers checkpoint: a folder, or owner/name[@revision] on the hub"
            );
        }
        Ok(Self { name: name.split('@').next().unwrap_or(name).to_owned(), folder, hub })
    }

    /// Returns the name, with the commit for hub checkpoints.
    pub(crate) fn display_name(&self) -> String {
        match &self.hub {
            Some(stamp) => format!("{} at {}", self.name, stamp.commit),
            None => self.name.clone(),
        }
    }

    /// Reads the configuration.
    pub(super) fn read_config<T>(
        &self,
        parse: impl Fn(Map<String, Value>) -> Result<T>,
    ) -> Result<T> {
        let path = self.folder.join(CONFIG_FILE);
        let config = published::config_json::read_json(&path).and_then(parse);
        config.with_context(|| path.display().to_string())
    }

    /// Reads the weights.
    pub(super) fn read_weights(
        &self,
        kind: &str,
        placement: &Placement,
        rename: impl Fn(&str) -> Option<String>,
    ) -> Result<Checkpoint> {
        published::load_weights(&self.folder, kind, placement, rename)
    }

    /// Returns the path of a file, if it exists.
    pub(super) fn find_file(&self, name: &str) -> Option<PathBuf> {
        Some(self.folder.join(name)).filter(|path| Path::is_file(path))
    }
}
