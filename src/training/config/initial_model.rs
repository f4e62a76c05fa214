//! Initial model of a training: the key `start`.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use toml::{Table, Value};

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::initial_model::InitialModel;

/// Keys that the initial model sets. A configuration with `start` must not contain them.
const DERIVED_KEYS: [&str; 4] = ["model", "vocabulary", "dialogue", "start_sha256"];

/// Reads the model in `start` and inserts the keys that the model sets.
///
/// # Errors
/// If the model cannot be read, or the configuration contains a key that the model sets.
pub(super) fn load_initial_model(
    table: &mut Table,
    path: &Path,
    mut downloads: HubDownloads,
) -> Result<Option<InitialModel>> {
    let Some(start) = table.get("start") else {
        return Ok(None);
    };
    let name =
        start.as_str().context("start must be a string: a folder, a hub id or \"embedded\"")?;
    if let Some(key) = DERIVED_KEYS.iter().find(|key| table.contains_key(**key)) {
        bail!("{key}: start = {name:?} sets this key\nhint: remove {key}");
    }
    let relative_path = path.parent().unwrap_or(Path::new("")).join(name);
    let location =
        if relative_path.exists() { relative_path.display().to_string() } else { name.to_owned() };
    let files = match name {
        "embedded" => PanelFiles::Embedded,
        _ => PanelFiles::resolve("start", &location, &mut downloads)?,
    };
    let initial_model =
        InitialModel::read(&files, downloads).with_context(|| format!("start = {name:?}"))?;
    insert_default(table, "start_sha256", &initial_model.sha256.to_string())?;
    insert_default(table, "model", &initial_model.model)?;
    insert_default(table, "vocabulary", &initial_model.model.decoder.vocab_size)?;
    insert_default(table, "dialogue", &initial_model.chat_template)?;
    if let Some(processor) = &initial_model.processor {
        insert_default(table, "processor", processor)?;
    }
    insert_default(table, "layout", &initial_model.layout)?;
    insert_default(table, "rubric", &initial_model.rubric)?;
    Ok(Some(initial_model))
}

/// Inserts a value unless the configuration has the key.
fn insert_default(table: &mut Table, key: &str, value: &impl Serialize) -> Result<()> {
    let value = Value::try_from(value).with_context(|| format!("cannot write {key}"))?;
    table.entry(key).or_insert(value);
    Ok(())
}
