//! Trains the projector of an encoder, and by choice the upper part of each member.

use std::collections::HashMap;

use acem3_experts::train::{Parameters, load_checkpoint};
use anyhow::{Context, Result};
use candle::{DType, Tensor};

use super::base_panel::BasePanel;
use super::panel_writer::{NamedTensors, TrainedWeights};
use crate::checkpoints::panel::initial_model::is_image_part;
use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::support::terminal::exit::Interrupted;
use crate::training::comparisons::encoders::candidate::Candidate;
use crate::training::stages::files::member_state::is_equal;
use crate::training::stages::files::stage_files::checkpoint_path;
use crate::training::{
    AdaptedModel, StageConfig, TrainConfig, TrainPaths, TrainingProgress, adapt,
};

/// Index of the member that trains the projector: medical knowledge, whose evaluations depend on
/// the image.
const PROJECTOR_MEMBER: usize = 1;

/// Training of one encoder.
pub(super) struct EncoderTraining<'a> {
    pub(super) base: &'a BasePanel,
    pub(super) encoder: &'a Candidate,
    /// Configuration with the stage of the projector.
    pub(super) config: &'a TrainConfig,
    /// Stage of the members, if they are trained.
    pub(super) member_stage: Option<StageConfig>,
    pub(super) paths: &'a TrainPaths,
    pub(super) progress: &'a TrainingProgress,
}

impl EncoderTraining<'_> {
    /// Runs the unfinished stages and returns the trained weights. A killed training resumes from
    /// its checkpoints.
    ///
    /// # Errors
    /// As in [`adapt`]; [`Interrupted`] if the user interrupts the training.
    pub(super) fn run(&self) -> Result<TrainedWeights> {
        let tokenizer = self.base.tokenizer.to_json()?;
        // Loading a random tower initialises its weights.
        self.encoder.tower()?;
        let tower = self.encoder.weights.all().into_iter();
        let tower = tower.map(|(name, var)| (name, var.as_tensor().clone()));
        let mut trained =
            self.run_stage(self.config, PROJECTOR_MEMBER, &tokenizer, tower.collect())?;
        trained.retain(|name, _| is_image_part(name));
        let vision = trained;
        let mut members = Vec::new();
        if let Some(stage) = &self.member_stage {
            for (i, member) in MEMBERS.iter().enumerate() {
                let stage = StageConfig { name: format!("members {member}"), ..stage.clone() };
                let config = TrainConfig { stages: vec![stage], ..self.config.clone() };
                let initial = vision.iter().map(|(name, t)| (name.clone(), t.clone()));
                let mut weights = self.run_stage(&config, i, &tokenizer, initial.collect())?;
                self.keep_changed(i, &mut weights)?;
                members.push(weights);
            }
        }
        Ok(TrainedWeights { vision, members })
    }

    /// Runs the stage of a configuration, unless its checkpoint exists. Returns all weights in f32.
    fn run_stage(
        &self,
        config: &TrainConfig,
        member: usize,
        tokenizer: &str,
        vision: Vec<(String, Tensor)>,
    ) -> Result<NamedTensors> {
        let stage = config.stages.first().context("no stage")?;
        let checkpoint = checkpoint_path(&self.paths.out, &stage.name);
        if checkpoint.exists() {
            return Ok(load_checkpoint(&checkpoint, None)?.into_iter().collect());
        }
        let decoder = self.base.decoder_weights(member)?;
        let initial = Parameters::from_tensors(decoder.into_iter().chain(vision))?;
        let model = AdaptedModel {
            parameters: &initial,
            tokenizer: tokenizer.as_bytes(),
            member,
            completion_prefixes: &self.base.completion_prefixes(),
        };
        let trained = adapt(config, &model, self.paths, self.progress).map_err(|error| {
            if self.progress.is_interrupted() {
                return Interrupted("run the same command to resume").into();
            }
            error
        })?;
        let weights = trained.all().into_iter();
        Ok(weights.map(|(name, var)| (name, var.as_detached_tensor())).collect())
    }

    /// Removes the weights of a member that training did not change.
    fn keep_changed(&self, member: usize, weights: &mut HashMap<String, Tensor>) -> Result<()> {
        weights.retain(|name, _| !is_image_part(name));
        for name in self.base.names(member) {
            let unchanged = self.base.tensor(member, name, DType::F32)?;
            if weights.get(name).is_some_and(|tensor| is_equal(tensor, &unchanged)) {
                weights.remove(name);
            }
        }
        Ok(())
    }
}
