//! Vision tower of a checkpoint: included in it, in a separate folder, or downloaded from the hub.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use acem3_projector::ProjectorConfig;
use acem3_vision::published::{EncoderNetwork, encoder_by_repository};
use acem3_vision::{EncoderLayout, Selection, TensorRenaming};
use anyhow::{Context, Result, bail};

use super::config_json::CONFIG_FILE;
use super::source::CheckpointSource;
use super::vision_part::VisionPart;
use super::{shards, vision};
use crate::checkpoints::file_filter::FileFilter;
use crate::checkpoints::panel::member::VisionSetup;
use crate::checkpoints::published::model_names::TOWER_PREFIX;
use crate::checkpoints::published::tensor_names::{
    remove_unused_tower_tensors, separate_tower_tensor_name,
};
use crate::checkpoints::store::weight_files::{Checkpoint, WeightFiles};

/// Finds the vision tower of a checkpoint. Adds the tensors of a separately published tower to
/// `weights`.
pub(super) fn load_vision_tower(
    source: &CheckpointSource,
    vision_part: &VisionPart,
    weights: &mut Checkpoint,
    weight_files: &mut WeightFiles,
    files: &mut BTreeMap<String, String>,
) -> Result<VisionSetup> {
    let has_tower = weights.tensors.keys().any(|name| name.starts_with(TOWER_PREFIX));
    let folder = match (
        find_tower_folder(source, vision_part.tower_name.as_deref()),
        &vision_part.tower_name,
    ) {
        (None, Some(name)) if !has_tower => download_tower(source, name, weight_files)?,
        (folder, _) => folder,
    };
    let mut network = tower_network(source, vision_part, folder.as_deref(), has_tower)?;
    match &folder {
        Some(folder) if !has_tower => {
            let tensors = shards::read(folder, weight_files, files)?;
            let names = tensors.iter().map(|(name, _)| name.as_str());
            let renaming = TensorRenaming::find(network.layout, names)
                .with_context(|| folder.display().to_string())?;
            for (tensor, stored) in tensors {
                if let Some(model_name) = separate_tower_tensor_name(&renaming, &tensor) {
                    weights.add(&model_name, stored)?;
                }
            }
        }
        _ => remove_unused_tower_tensors(weights, network.layout),
    }
    let mut selection = vision_part.selection;
    if has_tower && lacks_last_block(weights, &network, selection) {
        network.config.num_hidden_layers -= 1;
        selection.select_layer += 1;
    }
    let mut folders: Vec<&Path> = vec![&source.path];
    folders.extend(folder.as_deref());
    let vision::Preprocessing { processor, tiling } =
        vision::read_processor(&folders, &network, vision_part)?;
    Ok(VisionSetup {
        processor,
        tiling,
        selection,
        projector: ProjectorConfig {
            kind: vision_part.projector,
            vision_hidden_size: network.config.hidden_size,
            hidden_size: vision_part.hidden_size,
        },
        vision: network.config,
    })
}

/// Returns the tower's configuration: from the checkpoint, from the tower's folder, or the built-in
/// one for a known repository name.
fn tower_network(
    source: &CheckpointSource,
    vision_part: &VisionPart,
    folder: Option<&Path>,
    has_tower: bool,
) -> Result<EncoderNetwork> {
    if let Some(network) = &vision_part.network {
        return Ok(network.clone());
    }
    let name = vision_part.tower_name.as_deref().unwrap_or_default();
    let network = match (folder, encoder_by_repository(name)) {
        (Some(folder), _) => vision::read_tower_config(folder)?,
        (None, Some(entry)) if has_tower => {
            let published = entry.published_encoder();
            vision::check_llava_tower(EncoderNetwork {
                layout: published.layout,
                config: published.config,
            })?
        }
        (None, _) => missing_tower(source, name)?,
    };
    // LLaVA's code removes the last block of a SigLIP and uses the output of the rest
    // (`siglip_encoder.py`).
    if network.layout == EncoderLayout::Siglip && vision_part.selection.select_layer != -2 {
        bail!(
            "{}: mm_vision_select_layer is {}, expected -2 for SigLIP",
            source.path.join(CONFIG_FILE).display(),
            vision_part.selection.select_layer
        );
    }
    Ok(network)
}

/// Returns true if a checkpoint includes a `SigLIP` without its last block. LLaVA's code removes that
/// block before it trains and saves the tower (`siglip_encoder.py`), and counts layers with it.
fn lacks_last_block(weights: &Checkpoint, network: &EncoderNetwork, selection: Selection) -> bool {
    let Some(last) = network.config.num_hidden_layers.checked_sub(1) else {
        return false;
    };
    let prefix = format!("{TOWER_PREFIX}encoder.layers.{last}.");
    network.layout == EncoderLayout::Siglip
        && selection.select_layer == -2
        && !weights.tensors.keys().any(|name| name.starts_with(&prefix))
}

/// Returns the folder of a tower: the configured one, or one with the tower's name next to or
/// inside the checkpoint.
fn find_tower_folder(source: &CheckpointSource, name: Option<&str>) -> Option<PathBuf> {
    if source.vision_tower.is_some() {
        return source.vision_tower.clone();
    }
    let name = name?;
    let short_name = name.rsplit('/').next().unwrap_or(name);
    let bases = [Some(source.path.as_path()), source.path.parent()];
    let candidates =
        bases.into_iter().flatten().flat_map(|base| [base.join(name), base.join(short_name)]);
    let mut found = candidates.filter(|candidate| candidate.join(CONFIG_FILE).is_file());
    found.find(|candidate| *candidate != source.path)
}

/// Downloads the tower if its name is a hub id.
fn download_tower(
    source: &CheckpointSource,
    name: &str,
    weight_files: &mut WeightFiles,
) -> Result<Option<PathBuf>> {
    let found = weight_files.downloads.download(name, &FileFilter::Encoder);
    found.with_context(|| missing_tower_message(source, name))
}

fn missing_tower<T>(source: &CheckpointSource, name: &str) -> Result<T> {
    bail!(
        "{}\n\
         hint: copy the tower's folder next to the checkpoint, or set vision_tower in a \
         members file",
        missing_tower_message(source, name)
    )
}

fn missing_tower_message(source: &CheckpointSource, name: &str) -> String {
    let folder = source.path.display();
    format!("{folder}: vision tower `{name}` not found in the folder or next to it")
}
