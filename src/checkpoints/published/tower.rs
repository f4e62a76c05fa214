//! Vision tower of a checkpoint: included in it, in a separate folder, or downloaded from the hub.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use acem3_projector::ProjectorConfig;
use acem3_vision::published::{Network, called};
use acem3_vision::{Layout, Renaming};
use anyhow::{Context, Result, bail};

use super::config_json::CONFIG_FILE;
use super::source::CheckpointSource;
use super::vision_part::VisionPart;
use super::{shards, vision};
use crate::checkpoints::file_filter::FileFilter;
use crate::checkpoints::panel::member::VisionSetup;
use crate::checkpoints::published::tensor_names::{TOWER, drop_unused, tower_name};
use crate::checkpoints::store::weight_files::{Checkpoint, WeightFiles};

/// Finds the vision tower of a checkpoint. Adds the tensors of a separately published tower to
/// `weights`.
pub(super) fn find(
    source: &CheckpointSource,
    eyes: &VisionPart,
    weights: &mut Checkpoint,
    library: &mut WeightFiles,
    files: &mut BTreeMap<String, String>,
) -> Result<VisionSetup> {
    let brings = weights.tensors.keys().any(|name| name.starts_with(TOWER));
    let folder = match (folder(source, eyes.tower.as_deref()), &eyes.tower) {
        (None, Some(name)) if !brings => fetched(source, name, library)?,
        (folder, _) => folder,
    };
    let network = network(source, eyes, folder.as_deref(), brings)?;
    match &folder {
        Some(folder) if !brings => {
            let stored = shards::read(folder, library, files)?;
            let names = stored.iter().map(|(name, _)| name.as_str());
            let renaming = Renaming::find(network.layout, names)
                .with_context(|| folder.display().to_string())?;
            for (tensor, stored) in stored {
                if let Some(ours) = tower_name(&renaming, &tensor) {
                    weights.add(&ours, stored)?;
                }
            }
        }
        _ => drop_unused(weights, network.layout),
    }
    let mut folders: Vec<&Path> = vec![&source.folder];
    folders.extend(folder.as_deref());
    let processor = vision::processor(&folders, &network, eyes)?;
    Ok(VisionSetup {
        processor,
        pinpoints: eyes.pinpoints.clone(),
        selection: eyes.selection,
        projector: ProjectorConfig {
            kind: eyes.projector,
            vision_hidden_size: network.config.hidden_size,
            hidden_size: eyes.hidden_size,
        },
        vision: network.config,
    })
}

/// Returns the tower's configuration: from the checkpoint, from the tower's folder, or the known one of
/// its name.
fn network(
    source: &CheckpointSource,
    eyes: &VisionPart,
    folder: Option<&Path>,
    brings: bool,
) -> Result<Network> {
    if let Some(network) = &eyes.network {
        return Ok(network.clone());
    }
    let name = eyes.tower.as_deref().unwrap_or_default();
    let network = match (folder, called(name)) {
        (Some(folder), _) => vision::of_folder(folder)?,
        (None, Some(entry)) if brings => {
            let published = entry.published();
            vision::allowed(Network {
                layout: published.layout,
                config: published.config,
            })?
        }
        (None, _) => missing(source, name)?,
    };
    // LLaVA's code removes the last block of a SigLIP and uses the output of the rest (`siglip_encoder.py`).
    if network.layout == Layout::Siglip && eyes.selection.select_layer != -2 {
        bail!(
            "{}: mm_vision_select_layer is {}, expected -2 for SigLIP",
            source.folder.join(CONFIG_FILE).display(),
            eyes.selection.select_layer
        );
    }
    Ok(network)
}

/// Returns the folder of a tower: the configured one, or one with the tower's name next to or inside
/// the checkpoint.
fn folder(source: &CheckpointSource, name: Option<&str>) -> Option<PathBuf> {
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

/// Downloads the tower if its name is a hub id.
fn fetched(
    source: &CheckpointSource,
    name: &str,
    library: &mut WeightFiles,
) -> Result<Option<PathBuf>> {
    let found = library.downloads.folder(name, &FileFilter::Encoder);
    found.with_context(|| absent(source, name))
}

fn missing<T>(source: &CheckpointSource, name: &str) -> Result<T> {
    bail!(
        "{}\n\
         hint: copy the tower's folder next to the checkpoint, or set vision_tower in a \
         members file",
        absent(source, name)
    )
}

fn absent(source: &CheckpointSource, name: &str) -> String {
    let folder = source.folder.display();
    format!("{folder}: vision tower `{name}` not found in the folder or next to it")
}
