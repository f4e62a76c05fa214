//! The vision tower of a checkpoint: its own, or one that is published on its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use acem3_projector::ProjectorConfig;
use acem3_vision::VisionConfig;
use anyhow::{Context, Result, bail};

use super::config::Eyes;
use super::fields::Fields;
use super::names::tower_name;
use super::{CONFIG_FILE, Source, json, shards, vision};
use crate::panel::member::Sight;
use crate::panel::weights::{Checkpoint, Library};

/// The eyes of a checkpoint whose own tensors are in `weights`; those of a tower that it only names
/// are added to them.
pub(super) fn find(
    source: &Source,
    eyes: &Eyes,
    weights: &mut Checkpoint,
    library: &mut Library,
    files: &mut BTreeMap<String, String>,
) -> Result<Sight> {
    let folder = folder(source, eyes.tower.as_deref());
    let brings = weights
        .tensors
        .keys()
        .any(|name| name.starts_with("model.vision_tower."));
    let config = match (&eyes.vision, &folder, &eyes.tower) {
        (Some(config), ..) => config.clone(),
        (None, Some(folder), _) => config_of(folder)?,
        (None, None, Some(name)) if brings => match vision::known(name) {
            Some(config) => config,
            None => missing(source, name)?,
        },
        (None, None, name) => missing(source, name.as_deref().unwrap_or_default())?,
    };
    if let (false, Some(folder)) = (brings, &folder) {
        for (tensor, stored) in shards::read(folder, library, files)? {
            if let Some(ours) = tower_name(&tensor) {
                weights.add(&ours, stored)?;
            }
        }
    }
    let mut folders: Vec<&Path> = vec![&source.folder];
    folders.extend(folder.as_deref());
    let processor = vision::processor(&folders, &config, eyes.pad)?;
    Ok(Sight {
        processor,
        selection: eyes.selection,
        projector: ProjectorConfig {
            kind: eyes.projector,
            vision_hidden_size: config.hidden_size,
            hidden_size: eyes.hidden_size,
        },
        vision: config,
    })
}

/// The folder of a tower: the one that is named outright, or one of the tower's name beside or
/// inside the checkpoint.
fn folder(source: &Source, name: Option<&str>) -> Option<PathBuf> {
    if source.vision_tower.is_some() {
        return source.vision_tower.clone();
    }
    let name = name?;
    let last = name.rsplit('/').next().unwrap_or(name);
    let bases = [Some(source.folder.as_path()), source.folder.parent()];
    let places = bases
        .into_iter()
        .flatten()
        .flat_map(|base| [base.join(name), base.join(last)]);
    let mut found = places.filter(|place| place.join(CONFIG_FILE).is_file());
    found.find(|place| *place != source.folder)
}

fn missing<T>(source: &Source, name: &str) -> Result<T> {
    bail!(
        "{}: its vision tower `{name}` is not there\n\
         hint: put the tower's folder beside the checkpoint's, or name it as vision_tower in a \
         panel's file",
        source.folder.display()
    )
}

/// The sizes of a tower: of a whole CLIP, or of its vision part.
fn config_of(folder: &Path) -> Result<VisionConfig> {
    let path = folder.join(CONFIG_FILE);
    let read = || {
        let map = json(&path)?;
        let whole = map.get("model_type").and_then(|kind| kind.as_str()) == Some("clip");
        let mut fields = Fields::new("", map);
        let mut fields = if whole {
            let part = fields.object("vision_config")?;
            part.context("vision_config is missing")?
        } else {
            fields
        };
        let config = vision::tower(&mut fields)?;
        fields.finish(&[])?;
        Ok::<_, anyhow::Error>(config)
    };
    read().with_context(|| path.display().to_string())
}
