//! Initial model of a training: the key `start`.

use std::path::{Path, PathBuf};

use acem3_experts::prompt::{ChatTemplate, Rubric};
use acem3_projector::ProjectorKind;
use anyhow::{Context, Result, bail};
use serde::Serialize;
use toml::{Table, Value};

use crate::checkpoints::file_filter::FileFilter;
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::initial_model::InitialModel;
use crate::checkpoints::published::published_tower::PublishedTower;
use crate::support::files::folder::parent_folder;
use crate::training::config::judging_config::JudgingConfig;
use crate::training::config::start_config::StartConfig;

/// Keys that the initial model sets. A configuration with `start` must not contain them.
const DERIVED_KEYS: [&str; 3] = ["model", "vocabulary", "start_sha256"];

/// Reads the model in `start` and inserts the keys that the model sets.
///
/// # Errors
/// If the model cannot be read, or the configuration contains a key that the model sets.
pub(super) fn load_initial_model(
    table: &mut Table,
    path: &Path,
    mut downloads: HubDownloads,
) -> Result<Option<InitialModel>> {
    let encoder = ["vision_tower", "projector"].map(|key| table.remove(key));
    let Some(start) = table.get("start") else {
        if encoder.iter().any(Option::is_some) {
            bail!(
                "vision_tower and projector: expected only with `start`\n\
                 hint: [model.vision] and [model.projector] describe a model without `start`"
            );
        }
        return Ok(None);
    };
    let mut start: StartConfig = start
        .clone()
        .try_into()
        .context("start must be a string: a folder, a hub id or \"embedded\"")?;
    let [tower, projector] = encoder;
    if let Some(tower) = tower {
        let tower =
            tower.as_str().context("vision_tower must be a string: a folder or a hub id")?;
        start.vision_tower = Some(tower.to_owned());
    }
    if let Some(kind) = projector {
        let kind = kind.try_into().context(
            "projector\nhint: `projector = \"linear\"`, `\"mlp2x_gelu\"` or `{ pixel_shuffle = { factor = 2 } }`",
        )?;
        start.projector = Some(kind);
    }
    if start.projector.is_some() && start.vision_tower.is_none() {
        bail!("projector: expected only with `vision_tower`\nhint: add `vision_tower`");
    }
    table.insert("start".to_owned(), Value::try_from(&start).context("cannot write start")?);
    let name = start.model.as_str();
    if let Some(key) = DERIVED_KEYS.iter().find(|key| table.contains_key(**key)) {
        bail!("{key}: start = {name:?} sets this key\nhint: remove {key}");
    }
    let location = locate(path, name);
    let files = match name {
        "embedded" => PanelFiles::Embedded,
        _ => PanelFiles::resolve("start", &location, &mut downloads)?,
    };
    let tower = open_tower(&start, path, &mut downloads)?;
    let keeps_bf16 = table.get("dtype").and_then(Value::as_str) == Some("bf16");
    let rubric = rubric_of(table, path)?;
    let mut initial_model = InitialModel::read(&files, &rubric, downloads, keeps_bf16)
        .with_context(|| format!("start = {name:?}"))?;
    if let Some((tower, projector)) = tower {
        initial_model = initial_model.with_vision_tower(&tower, projector)?;
    }
    if let Some(template) = table.get("dialogue").and_then(Value::as_str) {
        initial_model.chat_template = ChatTemplate {
            image_markers: initial_model.chat_template.image_markers,
            ..ChatTemplate::by_name(template).context("dialogue")?
        };
        table.remove("dialogue");
    }
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

/// Returns the rubric that the panel is trained for.
pub(super) fn rubric_of(table: &Table, path: &Path) -> Result<Rubric> {
    let judging = table.get("judging").cloned().map(Value::try_into::<JudgingConfig>).transpose();
    let mut judging = judging.context("[judging]")?.unwrap_or_default();
    judging.resolve(&parent_folder(path)?)?;
    judging.to_rubric()
}

/// Returns the path of a folder relative to the configuration if it exists, else the name as it is.
pub(super) fn locate(config: &Path, name: &str) -> String {
    let relative_path = config.parent().unwrap_or(Path::new("")).join(name);
    if relative_path.exists() { relative_path.display().to_string() } else { name.to_owned() }
}

/// Opens the encoder that replaces the vision tower, with the kind of the new projector.
fn open_tower(
    start: &StartConfig,
    path: &Path,
    downloads: &mut HubDownloads,
) -> Result<Option<(PublishedTower, ProjectorKind)>> {
    let Some(name) = start.vision_tower.as_deref() else {
        return Ok(None);
    };
    let projector = start.projector.unwrap_or(ProjectorKind::Mlp2xGelu);
    let location = locate(path, name);
    let folder = if Path::new(&location).is_dir() {
        PathBuf::from(location)
    } else {
        let downloaded = downloads.download(name, &FileFilter::Encoder)?;
        downloaded.with_context(|| {
            format!(
                "vision_tower = {name:?}: no such folder\n\
                 hint: name the folder of a published encoder, relative to the configuration, or a hub id"
            )
        })?
    };
    let tower =
        PublishedTower::open(&folder).with_context(|| format!("vision_tower = {name:?}"))?;
    Ok(Some((tower, projector)))
}

/// Inserts a value unless the configuration has the key.
fn insert_default(table: &mut Table, key: &str, value: &impl Serialize) -> Result<()> {
    let value = Value::try_from(value).with_context(|| format!("cannot write {key}"))?;
    table.entry(key).or_insert(value);
    Ok(())
}
