//! What is trained for every encoder: equal examples, steps and parts.

use std::collections::BTreeMap;

use acem3_experts::ModelConfig;
use acem3_experts::train::{LoraConfig, OptimizerConfig};
use acem3_projector::{ProjectorConfig, ProjectorKind};
use acem3_vision::SelectFeature;
use anyhow::{Context, Result, bail};
use candle::Tensor;
use serde::Serialize;

use super::base_panel::BasePanel;
use super::cost::count_parameters;
use crate::checkpoints::panel::member_names::MemberNames;
use crate::support::text::format_count;
use crate::training::comparisons::encoders::candidate::Candidate;
use crate::training::config::data_shares::DataShares;
use crate::training::config::judging_config::JudgingConfig;
use crate::training::{Precision, RewardTokens, StageConfig, StageKind, TrainConfig};

/// Data sets of the training examples. The held-out pairs come from the same ones.
const DATA_SETS: [&str; 2] = ["slake", "vqa_rad"];
/// Matrices with adapters.
const ADAPTED: [&str; 2] = ["q_proj", "v_proj"];
/// Sequences per forward pass.
const MICRO_BATCH: usize = 4;

/// Training that every encoder gets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EncoderPlan {
    /// Optimizer steps of the projector.
    pub steps: u64,
    /// Sequences per step.
    pub batch: usize,
    /// Peak learning rate of the projector.
    pub learning_rate: f64,
    /// Part of the members that is trained after the projector.
    pub members: MemberTraining,
    /// Optimizer steps of each member.
    pub member_steps: u64,
    /// Peak learning rate of the members.
    pub member_learning_rate: f64,
    /// Architecture of the projector; `None` for that of the base.
    pub projector: Option<ProjectorKind>,
    /// Context length; `None` for that of the base.
    pub context: Option<usize>,
    /// True if the class token of an encoder is also an image token.
    pub uses_class_token: bool,
    /// Element type of the matrices in training.
    pub dtype: Precision,
}

/// Part of the members that is trained after the projector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberTraining {
    /// Nothing: the decoders of the base stay as they are.
    Frozen,
    /// This number of upper layers, the last norm and the output layer of each member.
    UpperLayers(usize),
    /// Adapters of this rank in all layers of each member.
    Adapters(usize),
}

impl EncoderPlan {
    /// Describes what is trained and for how long.
    pub fn describe(&self) -> String {
        let amount = |steps: u64| {
            let steps = format_count(steps, "step");
            format!("{steps} of {}", format_count(self.batch as u64, "sequence"))
        };
        let projector = format!("projector ({})", amount(self.steps));
        let part = match self.members {
            MemberTraining::Frozen => {
                return format!("{projector}; encoder and decoders are frozen");
            }
            MemberTraining::UpperLayers(1) => "the upper layer of each member".to_owned(),
            MemberTraining::UpperLayers(n) => format!("the {n} upper layers of each member"),
            MemberTraining::Adapters(rank) => {
                format!("LoRA adapters of rank {rank} of each member")
            }
        };
        format!(
            "{projector}, then {part} ({} each); the encoder is frozen",
            amount(self.member_steps)
        )
    }

    /// Returns the configuration of a member with an encoder.
    ///
    /// # Errors
    /// If the projector does not fit the encoder.
    pub(super) fn model(&self, base: &BasePanel, encoder: &Candidate) -> Result<ModelConfig> {
        let kind = self.projector.or(base.projector).unwrap_or(ProjectorKind::Mlp2xGelu);
        let mut selection = encoder.selection;
        if self.uses_class_token {
            selection.select_feature = SelectFeature::ClsPatch;
        } else if !matches!(kind, ProjectorKind::Linear | ProjectorKind::Mlp2xGelu) {
            // These projectors take the patches of a square.
            selection.select_feature = SelectFeature::Patch;
        }
        let mut decoder = base.decoder.clone();
        if let Some(context) = self.context {
            decoder.max_position_embeddings = context;
        }
        let features = encoder.config.token_count(selection);
        check_grid(kind, features).with_context(|| format!("encoder {}", encoder.name))?;
        let model = ModelConfig {
            vision: encoder.config.clone(),
            selection,
            projector: ProjectorConfig {
                kind,
                vision_hidden_size: encoder.config.hidden_size,
                hidden_size: decoder.hidden_size,
            },
            tiling: None,
            decoder,
        };
        if let Err(problem) = model.validate() {
            bail!("encoder {}: {problem}", encoder.name);
        }
        Ok(model)
    }

    /// Returns the configuration of the training of the projector.
    pub(super) fn config(
        &self,
        base: &BasePanel,
        encoder: &Candidate,
        seed: u64,
        uses_data_sets: bool,
    ) -> Result<TrainConfig> {
        let model = self.model(base, encoder)?;
        let layers = model.decoder.num_hidden_layers;
        let shares = if uses_data_sets { &DATA_SETS[..] } else { &[] };
        Ok(TrainConfig {
            name: format!("{} with encoder {}", base.prompt_config.name, encoder.name),
            start: None,
            start_sha256: None,
            dialogue: base.chat_template.clone(),
            seed,
            micro_batch: MICRO_BATCH,
            dtype: self.dtype,
            recomputes_activations: false,
            keeps_adapters: false,
            layout: base.prompt_config.layout,
            rubric: base.prompt_config.rubric,
            vocabulary: model.decoder.vocab_size,
            trunk_layers: layers.saturating_sub(1),
            judging: JudgingConfig::default(),
            processor: Some(encoder.processor.clone()),
            model,
            data_shares: shares
                .iter()
                .map(|name| ((*name).to_owned(), 0.5))
                .collect::<BTreeMap<_, _>>(),
            reward_tokens: RewardTokens::default(),
            optimizer: OptimizerConfig::default(),
            stages: vec![self.projector_stage(base, uses_data_sets)],
        })
    }

    /// Returns the number of trained parameters of the members. `tensors`: those that the training
    /// changed; an adapter of rank *r* on a matrix `(m, n)` has *r (m + n)*.
    pub(super) fn count_trained<'a>(&self, tensors: impl Iterator<Item = &'a Tensor>) -> u64 {
        let MemberTraining::Adapters(rank) = self.members else {
            return count_parameters(tensors);
        };
        let adapters = tensors.map(|matrix| (rank * matrix.dims().iter().sum::<usize>()) as u64);
        adapters.sum()
    }

    /// Returns the stage of the members; `None` if they are frozen.
    pub(super) fn member_stage(
        &self,
        base: &BasePanel,
        uses_data_sets: bool,
    ) -> Option<StageConfig> {
        let layers = base.decoder.num_hidden_layers;
        let (frozen_layers, lora) = match self.members {
            MemberTraining::Frozen => return None,
            MemberTraining::UpperLayers(n) => (Some(layers.saturating_sub(n)), None),
            MemberTraining::Adapters(rank) => {
                let targets = ADAPTED.map(str::to_owned).to_vec();
                (None, Some(LoraConfig { rank, alpha: 2.0 * rank as f64, targets }))
            }
        };
        Some(StageConfig {
            name: "members".to_owned(),
            kind: StageKind::Heads,
            steps: self.member_steps,
            learning_rate: self.member_learning_rate,
            warmup: (self.member_steps / 10).max(1),
            frozen: Vec::new(),
            frozen_layers,
            lora,
            answer_proportion: 0.0,
            ..self.projector_stage(base, uses_data_sets)
        })
    }

    fn projector_stage(&self, base: &BasePanel, uses_data_sets: bool) -> StageConfig {
        let decoder = ["model.embed_tokens.", "model.layers.", "model.norm.", "lm_head."];
        // A decoder with tied embeddings has no output layer.
        let exists = |prefix: &&str| base.names(0).any(|name| name.starts_with(prefix));
        let frozen = ["model.vision_tower."].into_iter().chain(decoder.into_iter().filter(exists));
        StageConfig {
            evaluations: None,
            from: None,
            mean_with: None,
            name: "projector".to_owned(),
            kind: StageKind::Sft,
            steps: self.steps,
            batch: self.batch,
            learning_rate: self.learning_rate,
            warmup: (self.steps / 10).max(1),
            clip_norm: 1.0,
            validate_every: None,
            frozen: frozen.map(str::to_owned).collect(),
            frozen_layers: None,
            lora: None,
            data_set_proportion: f64::from(u8::from(uses_data_sets)),
            data_shares: DataShares::new(),
            answer_proportion: 0.5,
            copying_proportion: 0.0,
            quoting_image_proportion: 0.0,
            max_claim_words: 4,
            invented_proportion: 0.0,
            consistency_proportion: 0.0,
            comparison_proportion: 0.0,
            quoting_proportion: 0.0,
            wrong_finding_proportion: 0.0,
            foreign_proportion: 0.0,
            other_answer_proportion: 0.0,
            foreign_phantom_proportion: None,
            max_padding: 1,
            varied_proportion: 0.0,
            long_answer_proportion: 0.0,
            unrelated_answer_proportion: 0.0,
            easy_proportion: 0.0,
            has_reward_token: false,
            strips_reward_tokens: false,
            members: Vec::new(),
            member_names: MemberNames::default(),
            preferences: None,
        }
    }
}

/// Checks that a projector divides the patches of an encoder.
fn check_grid(kind: ProjectorKind, features: usize) -> Result<()> {
    let grid = features.isqrt();
    let (divisor, name) = match kind {
        ProjectorKind::Linear | ProjectorKind::Mlp2xGelu => return Ok(()),
        ProjectorKind::PixelShuffle { factor } => (factor, format!("pixel_shuffle:{factor}")),
        ProjectorKind::Pooled(settings) => {
            let side = settings.tokens_per_side;
            (side, format!("pooled:{side}"))
        }
    };
    if divisor == 0 || grid * grid != features || !grid.is_multiple_of(divisor) {
        bail!(
            "the projector {name} needs a square of patches whose side is a multiple of {divisor}, found {features} \
             patch features\n\
             hint: use --projector mlp2x_gelu, or leave out --class-token"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use candle::{DType, Device};

    use super::*;

    #[test]
    fn adapters_count_by_their_rank() -> Result<()> {
        let plan = |members| EncoderPlan {
            steps: 1,
            batch: 1,
            learning_rate: 1e-3,
            members,
            member_steps: 1,
            member_learning_rate: 1e-3,
            projector: None,
            context: None,
            uses_class_token: false,
            dtype: Precision::default(),
        };
        let matrix = Tensor::zeros((6, 10), DType::F32, &Device::Cpu)?;
        let count = |members| plan(members).count_trained([&matrix, &matrix].into_iter());
        assert_eq!(count(MemberTraining::Adapters(4)), 2 * 4 * (6 + 10));
        assert_eq!(count(MemberTraining::UpperLayers(1)), 2 * 60);
        Ok(())
    }
}
