//! Configuration of a training: the top level of `train.toml`.

use std::collections::BTreeMap;

use acem3_experts::ModelConfig;
use acem3_experts::prompt::{ChatTemplate, PromptLayout, RubricDetail};
use acem3_experts::train::OptimizerConfig;
use acem3_vision::ImageProcessor;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::data_shares::{DataShares, check_data_shares};
use super::judging_config::JudgingConfig;
use super::precision::Precision;
use super::reward_tokens::RewardTokens;
use super::stage::mean_checks::check_means;
use super::stage::stage_checks::{check_examples, check_stage};
use super::stage::stage_config::StageConfig;
use super::stage::stage_kind::StageKind;
use super::start_config::StartConfig;

/// Configuration of a training: the model, its tokenizer, and the stages in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Name of the panel in tables and records.
    pub name: String,
    /// Initial model: a folder (relative to the configuration) or a hub id of a panel or a
    /// published checkpoint, or `embedded`. It sets `model`, `vocabulary` and `dialogue`, and the
    /// defaults of `processor`, `layout` and `rubric`. Without an initial model, weights are
    /// initialised at random.
    ///
    /// The keys `vision_tower` and `projector` of a file replace the encoder of the model. They are
    /// part of this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<StartConfig>,
    /// SHA-256 of the initial model. It distinguishes two models of the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_sha256: Option<String>,
    /// Chat template of the members. With an initial model, the name of a built-in template replaces
    /// that of the model.
    #[serde(default, skip_serializing_if = "ChatTemplate::is_plain")]
    pub dialogue: ChatTemplate,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Sequences per forward pass. This value affects the result, unlike the number of CPU cores.
    #[serde(default = "default_micro_batch")]
    pub micro_batch: usize,
    /// Element type of the model's matrices in training.
    #[serde(default, skip_serializing_if = "Precision::is_f32")]
    pub dtype: Precision,
    /// Recomputes the activations of decoder layers in the backward pass. This takes about a third
    /// more time but stores the activations of only one layer in memory.
    #[serde(default, rename = "recompute", skip_serializing_if = "std::ops::Not::not")]
    pub recomputes_activations: bool,
    /// Keeps the adapters of stages with `[stages.lora]` apart: their checkpoints have the adapters alone,
    /// and the panel has the common base once, in the element type of its files, and the adapters of each
    /// member.
    #[serde(default, rename = "keep_adapters", skip_serializing_if = "std::ops::Not::not")]
    pub keeps_adapters: bool,
    /// Prompt layout of the panel.
    pub layout: PromptLayout,
    /// Amount of the rubric in prompts.
    pub rubric: RubricDetail,
    /// Number of tokens in the vocabulary.
    pub vocabulary: usize,
    /// Decoder layers that all members of the finished panel share.
    pub trunk_layers: usize,
    /// Architecture of a member.
    pub model: ModelConfig,
    /// Image preprocessing; by default a square of the vision tower's input size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<ImageProcessor>,
    /// Sampling weight of each data set by name. Unnamed data sets have weight 0. If the table is
    /// empty, the weight of a data set is the square root of its size.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub data_shares: DataShares,
    /// Rubric and forms of judging of the panel.
    #[serde(default, skip_serializing_if = "JudgingConfig::is_default")]
    pub judging: JudgingConfig,
    /// Reward tokens of the members. A member that the table does not name has those of the initial
    /// model, else `[Good]` and `[Bad]`.
    #[serde(default, skip_serializing_if = "RewardTokens::is_default")]
    pub reward_tokens: RewardTokens,
    /// Optimizer settings.
    #[serde(default)]
    pub optimizer: OptimizerConfig,
    /// Stages in order.
    pub stages: Vec<StageConfig>,
}

fn default_micro_batch() -> usize {
    4
}

impl TrainConfig {
    /// Returns the image preprocessing.
    pub fn processor(&self) -> ImageProcessor {
        if self.model.is_text_only() {
            return ImageProcessor::default();
        }
        let square = || ImageProcessor::square(self.model.vision.image_size);
        self.processor.clone().unwrap_or_else(square)
    }

    /// Returns true if a stage samples data sets or `data_shares` is set.
    pub fn uses_data_sets(&self) -> bool {
        let is_used = |stage: &StageConfig| stage.data_set_proportion > 0.0;
        !self.data_shares.is_empty() || self.stages.iter().any(is_used)
    }

    /// Checks all values and the order of the stages.
    pub(super) fn check(&self) -> Result<()> {
        self.check_model()?;
        if self.micro_batch == 0 {
            bail!("micro_batch is 0, expected at least 1");
        }
        if self.stages.is_empty() {
            bail!("no stages, expected at least one\nhint: add a table [[stages]]");
        }
        let stages = self.stages.iter().map(|stage| (stage.name.as_str(), &stage.data_shares));
        check_data_shares(&self.data_shares, stages)?;
        self.check_optimizer()?;
        self.check_stage_names()?;
        check_means(&self.stages, self.start.is_none())?;
        self.check_stage_order()?;
        self.check_new_projector()?;
        self.check_kept_adapters()?;
        for stage in &self.stages {
            check_stage(stage, &self.model)
                .and_then(|()| check_examples(stage, &self.model, &self.judging))
                .with_context(|| format!("stage {}", stage.name))?;
        }
        Ok(())
    }

    fn check_model(&self) -> Result<()> {
        let decoder = &self.model.decoder;
        if let Err(problem) = self.model.validate() {
            bail!("model.{problem}");
        }
        self.processor().validate().context("processor")?;
        if self.trunk_layers >= decoder.num_hidden_layers {
            bail!(
                "trunk_layers is {}, expected fewer than the decoder's {} layers",
                self.trunk_layers,
                decoder.num_hidden_layers
            );
        }
        if decoder.vocab_size != self.vocabulary {
            bail!(
                "model.decoder.vocab_size is {}, expected {} (the value of vocabulary)",
                decoder.vocab_size,
                self.vocabulary
            );
        }
        Ok(())
    }

    /// Returns true if the projector of the initial model has no weights yet.
    fn has_new_projector(&self) -> bool {
        self.start.as_ref().is_some_and(|start| start.vision_tower.is_some())
    }

    /// Checks that the first stage after the encoder trains the projector of a new vision tower.
    fn check_new_projector(&self) -> Result<()> {
        let mut stages = self.stages.iter();
        let first = stages.find(|stage| stage.kind != StageKind::Encoder);
        let is_frozen = |stage: &StageConfig| {
            let frozen = stage.frozen_prefixes();
            frozen.iter().any(|prefix| "model.mm_projector.".starts_with(prefix.as_str()))
        };
        match first.filter(|stage| self.has_new_projector() && is_frozen(stage)) {
            Some(stage) => bail!(
                "stage {}: the projector of `vision_tower` is new, and this first stage freezes it\n\
                 hint: put a stage of kind \"align\" before it, with `frozen = [\"model.vision_tower.\", \
                 \"model.embed_tokens.\", \"model.layers.\"]`",
                stage.name
            ),
            None => Ok(()),
        }
    }

    /// Checks that the members have adapters over one base at the end.
    fn check_kept_adapters(&self) -> Result<()> {
        if !self.keeps_adapters {
            return Ok(());
        }
        if self.stages.iter().all(|stage| stage.lora.is_none()) {
            bail!(
                "keep_adapters = true: no stage trains adapters\n\
                 hint: add [stages.lora] to a stage, or remove keep_adapters"
            );
        }
        let is_whole = |stage: &&StageConfig| stage.lora.is_none() && !stage.trains_one_model();
        match self.stages.iter().find(is_whole) {
            Some(stage) => bail!(
                "keep_adapters = true: stage {} trains whole weights of each member, so that the \
                 members have no common base\n\
                 hint: add [stages.lora] to the stage, or remove keep_adapters",
                stage.name
            ),
            None => Ok(()),
        }
    }

    fn check_optimizer(&self) -> Result<()> {
        let OptimizerConfig { beta1, beta2, eps, weight_decay, momentum, .. } = self.optimizer;
        if ![beta1, beta2].iter().all(|beta| (0.0..1.0).contains(beta)) {
            bail!(
                "[optimizer]: beta1 is {beta1} and beta2 {beta2}, expected numbers from 0 to below 1"
            );
        }
        if !(0.0..1.0).contains(&momentum) {
            bail!("[optimizer]: momentum is {momentum}, expected a number from 0 to below 1");
        }
        if self.optimizer.has_unused_momentum() {
            bail!(
                "[optimizer]: momentum has no effect without Muon\n\
                 hint: add `matrices = \"muon\"`, or remove momentum (`beta1` is that of AdamW)"
            );
        }
        if !(eps.is_finite() && eps > 0.0) {
            bail!("[optimizer]: eps is {eps}, expected a positive number");
        }
        if !is_finite_and_not_negative(weight_decay) {
            bail!("[optimizer]: weight_decay is {weight_decay}, expected a number of at least 0");
        }
        Ok(())
    }

    /// Checks that stage names are unique and valid in file names.
    fn check_stage_names(&self) -> Result<()> {
        for (i, stage) in self.stages.iter().enumerate() {
            let mut earlier = self.stages[..i].iter();
            if earlier.any(|other| other.name == stage.name) {
                bail!("two stages have the name {:?}", stage.name);
            }
            let is_allowed = |c: char| c.is_alphanumeric() || ['-', '_', ' '].contains(&c);
            if stage.name.is_empty() || !stage.name.chars().all(is_allowed) {
                bail!(
                    "stage {:?}: the name is not a valid file name\n\
                     hint: use letters, digits, `-` and `_`",
                    stage.name
                );
            }
        }
        Ok(())
    }

    /// Checks that no joint stage follows a stage that trains members separately, unless it begins with
    /// the weights of one of them, and that every member is trained.
    fn check_stage_order(&self) -> Result<()> {
        let first_per_member = self.stages.iter().position(StageConfig::is_per_member);
        let is_joint = |stage: &StageConfig| {
            stage.kind != StageKind::Encoder && stage.trains_one_model() && stage.from.is_none()
        };
        let last_joint = self.stages.iter().rposition(is_joint);
        match (first_per_member, last_joint) {
            (Some(first), Some(joint)) if first < joint => bail!(
                "stage {}: the later stage {} would overwrite the heads that this stage trains\n\
                 hint: order the stages, or set `from` of the later stage to a member, whose weights all \
                 members then begin with",
                self.stages[first].name,
                self.stages[joint].name
            ),
            (Some(first), None)
                if self.start.is_none() && !self.stages[first].members.is_empty() =>
            {
                bail!(
                    "stage {}: the stage trains some members only, expected a stage of kind \"sft\" before it",
                    self.stages[first].name
                )
            }
            _ => Ok(()),
        }
    }
}

fn is_finite_and_not_negative(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use acem3_experts::train::LoraConfig;

    use super::*;

    /// Indices of two stages in the configuration.
    const POLISH: usize = 5;
    const HEADS: usize = 6;

    /// Returns the error of a configuration after a change.
    fn check_error(change: impl FnOnce(&mut TrainConfig)) -> String {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/recipes/mini_with_preferences.toml");
        let mut config = TrainConfig::read(&path).unwrap();
        change(&mut config);
        format!("{:#}", config.check().unwrap_err())
    }

    #[test]
    fn invalid_stages_are_rejected() {
        let duplicate = check_error(|c| c.stages[3].name = "align".to_owned());
        assert!(duplicate.contains("two stages have the name \"align\""), "{duplicate}");
        let path = check_error(|c| c.stages[1].name = "sub/align".to_owned());
        assert!(path.contains("sub/align"), "{path}");
        let order = check_error(|c| c.stages.swap(POLISH, HEADS));
        assert!(order.contains("the later stage polish"), "{order}");
        // A stage that begins with the weights of one member may come later.
        let ordered = check_error(|c| {
            c.stages[POLISH].from = Some("conclusion".to_owned());
            c.stages.swap(POLISH, HEADS);
            c.stages[POLISH].from = Some("conclusion".to_owned());
        });
        assert!(ordered.contains("trains members separately"), "{ordered}");
        let unknown = check_error(|c| c.stages[POLISH].from = Some("nobody".to_owned()));
        assert!(unknown.contains("from") && unknown.contains("medical_knowledge"), "{unknown}");
        let partial = check_error(|c| c.stages.drain(..HEADS).for_each(drop));
        assert!(partial.contains("some members only"), "{partial}");
        let rate = check_error(|c| c.stages[0].learning_rate = f64::NAN);
        assert!(rate.contains("stage encoder: rate is NaN, expected a positive"), "{rate}");
        let clip = check_error(|c| c.stages[0].clip_norm = -1.0);
        assert!(clip.contains("stage encoder: clip is -1, expected a positive"), "{clip}");
        let layers = check_error(|c| c.stages[HEADS].frozen_layers = Some(6));
        assert!(layers.contains("stage heads: frozen_layers is 6"), "{layers}");
        for name in ["..", "sft.running", ""] {
            let invalid = check_error(|c| c.stages[0].name = name.to_owned());
            assert!(invalid.contains("not a valid file name"), "{invalid}");
        }
        let batch = check_error(|c| c.stages[0].batch = usize::MAX);
        assert!(batch.contains("expected at most 65536"), "{batch}");
        let steps = check_error(|c| c.stages[0].steps = u64::MAX);
        assert!(steps.contains("more than 2147483648 examples"), "{steps}");
        for change in [
            |c: &mut TrainConfig| c.optimizer.beta2 = 1.0,
            |c: &mut TrainConfig| c.optimizer.eps = f64::NAN,
            |c: &mut TrainConfig| c.optimizer.weight_decay = -1.0,
        ] {
            let optimizer = check_error(change);
            assert!(optimizer.contains("[optimizer]: "), "{optimizer}");
        }
        let rewarded = check_error(|c| c.stages[0].has_reward_token = true);
        assert!(rewarded.contains("stage encoder: rewarded requires"), "{rewarded}");
        let unused = check_error(|c| c.keeps_adapters = true);
        assert!(unused.contains("keep_adapters = true: no stage trains adapters"), "{unused}");
        let whole = check_error(|c| {
            c.keeps_adapters = true;
            c.stages[POLISH].lora =
                Some(LoraConfig { rank: 2, alpha: 2.0, targets: vec!["q_proj".to_owned()] });
        });
        assert!(whole.contains("stage heads trains whole weights of each member"), "{whole}");
        let data = check_error(|c| c.stages[HEADS].kind = StageKind::Rtdpo);
        assert!(data.contains("[stages.preferences]"), "{data}");
    }

    #[test]
    fn settings_without_effect_are_rejected() {
        let drilling = check_error(|c| c.stages[HEADS].quoting_proportion = 0.1);
        assert!(
            drilling.contains("stage heads: drilling has no effect: the stage has kind \"heads\""),
            "{drilling}"
        );
        let momentum = check_error(|c| c.optimizer.momentum = 0.5);
        assert!(momentum.contains("momentum has no effect without Muon"), "{momentum}");
    }

    #[test]
    fn adapters_without_targets_are_rejected() {
        let lora = |stage: usize, rank: usize, targets: &[&str]| {
            let targets = targets.iter().map(|t| (*t).to_owned()).collect();
            let (alpha, frozen) = (1.0, "model.layers.".to_owned());
            check_error(|c| {
                c.stages[stage].frozen.push(frozen);
                c.stages[stage].lora = Some(LoraConfig { rank, alpha, targets });
            })
        };
        for (error, problem) in [
            (lora(4, 0, &["q_proj"]), "stage refine: [stages.lora]: rank is 0"),
            (
                lora(4, 8, &["query"]),
                "stage refine: [stages.lora]: unknown matrix \"query\" in targets",
            ),
            (
                lora(4, 8, &["q_proj"]),
                "stage refine: [stages.lora]: \"q_proj\" in targets is frozen",
            ),
            (lora(0, 8, &["q_proj"]), "stage encoder: [stages.lora] adapts the decoder"),
        ] {
            assert!(error.contains(problem), "{error}");
            assert!(error.contains("\nhint: "), "{error}");
        }
    }
}
