//! The vision tower of a checkpoint, without its decoder.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

use super::config::CheckpointConfig;
use super::config_json::{CONFIG_FILE, read_json};
use super::model_names::TOWER_PREFIX;
use super::source::CheckpointSource;
use super::{shards, tensor_names, tower};
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::member::VisionSetup;
use crate::checkpoints::store::weight_files::{Checkpoint, WeightFiles};
use crate::support::device::Placement;

/// Vision tower of a checkpoint.
pub(crate) struct CheckpointTower {
    /// Configuration, preprocessing and selection.
    pub setup: VisionSetup,
    /// Weights under the names of a member.
    pub weights: Checkpoint,
}

impl CheckpointSource {
    /// Reads the vision tower. The weights of the decoder are not read into memory.
    ///
    /// # Errors
    /// If a file cannot be read, or the checkpoint is a text model.
    pub(crate) fn load_tower(&self, downloads: HubDownloads) -> Result<CheckpointTower> {
        let path = self.path.join(CONFIG_FILE);
        let file = path.display().to_string();
        let config = read_json(&path)
            .and_then(|map| CheckpointConfig::parse(map, &self.ignore_config))
            .with_context(|| file.clone())?;
        let Some(vision_part) = &config.vision else {
            bail!(
                "{file}: text-only model, expected one with a vision tower\n\
                 hint: use the folder of an encoder, or of a multimodal checkpoint such as LLaVA 1.5"
            );
        };
        let layout = config.layout;
        let tower_name = move |name: &str| {
            layout.rename(name, false).filter(|name| name.starts_with(TOWER_PREFIX))
        };
        let mut files = BTreeMap::new();
        let mut weight_files = WeightFiles::new(&Placement::cpu(), downloads)
            .with_selection(move |name| tower_name(name).is_some());
        let mut weights = Checkpoint::new("encoder");
        for (tensor, stored) in shards::read(&self.path, &mut weight_files, &mut files)? {
            if let Some(model_name) = tower_name(&tensor) {
                weights.add(&model_name, stored)?;
            }
        }
        tensor_names::remove_leading_dimensions(&mut weights)?;
        // A separate tower has other names.
        let mut tower_files = WeightFiles::new(&Placement::cpu(), weight_files.downloads);
        let setup = tower::load_vision_tower(
            self,
            vision_part,
            &mut weights,
            &mut tower_files,
            &mut files,
        )?;
        weights.tensors.retain(|name, _| name.starts_with(TOWER_PREFIX));
        Ok(CheckpointTower { setup, weights })
    }
}
