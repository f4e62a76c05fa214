//! `start`: a training that starts from a panel or a published checkpoint.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use toml::{Table, Value};

use crate::checkpoints::hub::Downloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::initial_model::InitialModel;

/// Keys that the initial model sets; a configuration with `start` must not contain them.
const DERIVED_KEYS: [&str; 4] = ["model", "vocabulary", "dialogue", "start_sha256"];

/// Reads the model that a configuration names in `start`, and adds the keys that follow from it.
///
/// # Errors
/// If the model cannot be read, or the configuration contains a key that the model sets.
pub(super) fn load_initial_model(
    table: &mut Table,
    path: &Path,
    mut downloads: Downloads,
) -> Result<Option<InitialModel>> {
    let Some(start) = table.get("start") else {
        return Ok(None);
    };
    let name = start
        .as_str()
        .context("start must be a string: a folder, a hub id or \"embedded\"")?;
    if let Some(key) = DERIVED_KEYS.iter().find(|key| table.contains_key(**key)) {
        bail!("{key} follows from start = {name:?}\nhint: remove {key}");
    }
    let relative = path.parent().unwrap_or(Path::new("")).join(name);
    let location = if relative.exists() {
        relative.display().to_string()
    } else {
        name.to_owned()
    };
    let files = match name {
        "embedded" => PanelFiles::Embedded,
        _ => PanelFiles::named("start", &location, &mut downloads)?,
    };
    let start =
        InitialModel::read(&files, downloads).with_context(|| format!("start = {name:?}"))?;
    insert_default(table, "start_sha256", &start.sha256.to_string())?;
    insert_default(table, "model", &start.model)?;
    insert_default(table, "vocabulary", &start.model.decoder.vocab_size)?;
    insert_default(table, "dialogue", &start.dialogue)?;
    insert_default(table, "processor", &start.processor)?;
    insert_default(table, "layout", &start.layout)?;
    insert_default(table, "rubric", &start.rubric)?;
    Ok(Some(start))
}

/// Inserts a value unless the configuration has the key.
fn insert_default(table: &mut Table, key: &str, value: &impl Serialize) -> Result<()> {
    let value = Value::try_from(value).with_context(|| format!("cannot write {key}"))?;
    table.entry(key).or_insert(value);
    Ok(())
}
