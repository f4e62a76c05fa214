//! Rounds that train on from the panel of the round before (line 11 of Algorithm 2 of AutoMedEval:
//! `M ← Train(R', M)`).

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::initial_model::InitialModel;
use crate::training::config::start_config::StartConfig;
use crate::training::{Precision, StageConfig, TrainConfig};

/// Checks that a training can start from the panel that the configuration trains.
///
/// # Errors
/// If a stage trains all members as one model, and another stage makes them differ.
pub(super) fn check_can_continue(config: &TrainConfig) -> Result<()> {
    let is_joint = |stage: &&StageConfig| stage.evaluations.is_some() && !stage.is_per_member();
    let joint = config.stages.iter().find(is_joint);
    let per_member = config.stages.iter().find(|stage| stage.is_per_member());
    if let (Some(joint), Some(per_member)) = (joint, per_member) {
        bail!(
            "a round trains on from the panel of the round before, but stage {} trains all members as one model, and they \
             differ after stage {}\n\
             hint: pass --restart to repeat the whole training in each round, or give [stages.evaluations] to stages of \
             kind \"heads\" only",
            joint.name,
            per_member.name
        );
    }
    Ok(())
}

/// Returns the training that continues with a panel: the stages with evaluations. `name`: the panel in
/// the configuration of the training.
///
/// # Errors
/// If the panel cannot be read.
pub(super) fn continue_from(
    panel: &Path,
    name: String,
    config: &TrainConfig,
) -> Result<(TrainConfig, InitialModel)> {
    let files = PanelFiles::Folder(panel.to_owned());
    let keeps_bf16 = config.dtype == Precision::Bf16;
    let model = InitialModel::read(
        &files,
        &config.judging.to_rubric()?,
        HubDownloads::default(),
        keeps_bf16,
    )
    .with_context(|| panel.display().to_string())?;
    let mut config = config.clone();
    config.stages.retain(|stage| stage.evaluations.is_some());
    config.start = Some(StartConfig { model: name, vision_tower: None, projector: None });
    config.start_sha256 = Some(model.sha256.to_string());
    Ok((config, model))
}
