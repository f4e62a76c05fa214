//! Location of the base of an adapter.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::checkpoints::file_filter::FileFilter;
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::single_gguf;
use crate::checkpoints::published::config_json::{
    ADAPTER_CONFIG_FILE, CONFIG_FILE, is_adapter_folder, is_gguf, read_json,
};
use crate::checkpoints::published::shards::has_weights;
use crate::checkpoints::published::source::CheckpointSource;

/// How to name the base of an adapter.
const NAME_HINT: &str = "hint: name it in a panel file: `base = \"FOLDER\"`, or for one member `{ folder = \
                         \"FOLDER\", adapter = \"ADAPTER\" }`; `--panel FILE.toml` and `start = \
                         \"FILE.toml\"` take the file";

impl CheckpointSource {
    /// Returns the source of a folder or GGUF file. If the folder is an adapter, its base is `base`, or
    /// else the one that its configuration names: a folder relative to the adapter or to the working
    /// directory, or a hub id.
    ///
    /// # Errors
    ///
    /// The base is not found, or the folder contains a model and an adapter.
    pub(crate) fn locate(
        path: PathBuf,
        base: Option<&Path>,
        downloads: &mut HubDownloads,
    ) -> Result<Self> {
        if !is_adapter_folder(&path) {
            return Ok(Self::new(path));
        }
        if has_weights(&path) {
            bail!(
                "{}: the folder contains a model and an adapter ({ADAPTER_CONFIG_FILE})\n\
                 hint: put the adapter into a folder of its own and name both in a panel file: \
                 `{{ folder = \"FOLDER\", adapter = \"ADAPTER\" }}`; or delete {ADAPTER_CONFIG_FILE} to \
                 use the model alone",
                path.display()
            );
        }
        let base = match base {
            Some(base) => base.to_owned(),
            None => recorded_base(&path, downloads)?,
        };
        Self::new(base).with_adapter(path)
    }

    /// Returns the same checkpoint as the base of an adapter.
    ///
    /// # Errors
    ///
    /// The adapter has no configuration, or the base is an adapter itself.
    pub(crate) fn with_adapter(self, adapter: PathBuf) -> Result<Self> {
        if !is_adapter_folder(&adapter) {
            bail!(
                "{}: not an adapter, expected {ADAPTER_CONFIG_FILE}\n\
                 hint: name the folder that peft or TRL wrote, with {ADAPTER_CONFIG_FILE} and \
                 adapter_model.safetensors",
                adapter.display()
            );
        }
        let path = single_gguf(&self.path).unwrap_or(self.path);
        if is_adapter_folder(&path) && !has_weights(&path) {
            bail!(
                "{}: the base of {} is an adapter too, expected a model\n\
                 hint: merge the lower adapter into its base with peft (`merge_and_unload`)",
                path.display(),
                adapter.display()
            );
        }
        Ok(Self { path, adapter: Some(adapter), ..self })
    }
}

/// Fields of `adapter_config.json` about the base.
#[derive(Deserialize)]
struct RecordedBase {
    base_model_name_or_path: Option<String>,
    revision: Option<String>,
}

/// Finds the base that the configuration of an adapter names.
fn recorded_base(adapter: &Path, downloads: &mut HubDownloads) -> Result<PathBuf> {
    let path = adapter.join(ADAPTER_CONFIG_FILE);
    let file = path.display();
    let fields = read_json(&path).and_then(|map| {
        let fields: RecordedBase = serde_json::from_value(Value::Object(map))?;
        Ok(fields)
    });
    let fields = fields.with_context(|| file.to_string())?;
    let Some(name) = fields.base_model_name_or_path.filter(|name| !name.is_empty()) else {
        bail!("{file}: no base_model_name_or_path, so the base is unknown\n{NAME_HINT}");
    };
    let is_model = |path: &PathBuf| {
        path.join(CONFIG_FILE).is_file() || is_gguf(path) || single_gguf(path).is_some()
    };
    let candidates = [adapter.join(&name), PathBuf::from(&name)];
    if let Some(found) = candidates.into_iter().find(is_model) {
        return Ok(found);
    }
    let id = match fields.revision.filter(|revision| !revision.is_empty()) {
        Some(revision) => format!("{name}@{revision}"),
        None => name.clone(),
    };
    let missing = || format!("{file}: the base `{name}` was not found");
    let folder = downloads.download(&id, &FileFilter::Panel);
    let folder = folder.map_err(|error| error.into_error(&id)).with_context(missing)?;
    folder.with_context(|| format!("{}\n{NAME_HINT}", missing()))
}
