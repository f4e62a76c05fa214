//! Configuration of one stage: a table `[[stages]]`.

use acem3_experts::ModelConfig;
use acem3_experts::train::LoraConfig;
use serde::{Deserialize, Serialize};

use super::evaluation_config::EvaluationConfig;
use super::frozen_part::FrozenPart;
use super::preference_config::PreferenceConfig;
use super::reward_token::RewardTokenRole;
use super::stage_kind::StageKind;
use super::zero_value::is_zero;
use crate::checkpoints::panel::member_names::MemberNames;
use crate::training::config::data_shares::DataShares;

/// Number of validations of a stage, unless its configuration sets `validate_every`.
const MAX_VALIDATIONS: u64 = 8;
/// Smallest number of steps per validation, unless the configuration sets `validate_every`. A
/// validation computes the loss of up to 48 examples per member, as many as several small steps.
const STEPS_PER_VALIDATION: u64 = 50;

/// Configuration of a stage: its data, trainable weights and schedule.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageConfig {
    /// Name of the stage and of its files.
    pub name: String,
    /// Objective and trained part.
    pub kind: StageKind,
    /// Optimizer steps.
    #[serde(default)]
    pub steps: u64,
    /// Sequences (or images) per step.
    #[serde(default)]
    pub batch: usize,
    /// Peak learning rate.
    #[serde(default, rename = "rate")]
    pub learning_rate: f64,
    /// Steps of linear warmup.
    #[serde(default = "default_warmup")]
    pub warmup: u64,
    /// Maximum norm of the gradients.
    #[serde(default = "default_clip_norm", rename = "clip")]
    pub clip_norm: f64,
    /// Steps between validations. By default a stage validates eight times, but at most once in
    /// 50 steps, and always after the last step. The checkpoint of the stage
    /// contains the weights with the lowest validation loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validate_every: Option<u64>,
    /// Name prefixes of frozen weights.
    #[serde(default)]
    pub frozen: Vec<String>,
    /// Number of lower decoder layers to freeze, together with the vision tower, the projector and
    /// the embedding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen_layers: Option<usize>,
    /// Trains only low-rank adapters (`rank`, `alpha`, `targets`) of the decoder layers that are
    /// not frozen. The stage's checkpoint contains the merged weights and has the usual format, or with
    /// `keep_adapters` the adapters alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lora: Option<LoraConfig>,
    /// Proportion of examples from the data sets. The other examples are phantoms.
    #[serde(default, rename = "real")]
    pub data_set_proportion: f64,
    /// Sampling weights of the data sets in this stage, instead of those of the training.
    #[serde(default, skip_serializing_if = "DataShares::is_empty")]
    pub data_shares: DataShares,
    /// Proportion of question-answering sequences in an evaluation stage (kind `sft` or `heads`).
    #[serde(default, rename = "answering")]
    pub answer_proportion: f64,
    /// Proportion of sequences without a case. They contain a claim and a finding, and train the
    /// comparison and its score.
    #[serde(default, rename = "comparing")]
    pub comparison_proportion: f64,
    /// Proportion of sequences without a case that train copying: lists of random words, written twice. Only
    /// the second copy has a loss. In evaluations, few tokens are copied.
    #[serde(default, rename = "copying", skip_serializing_if = "is_zero")]
    pub copying_proportion: f64,
    /// Proportion of pairs whose responses are random words, which train quoting and comparing.
    #[serde(default, rename = "drilling")]
    pub quoting_proportion: f64,
    /// Proportion of these pairs that have an image of the data sets. If none has, the panel learns to quote
    /// exactly in cases without an image only.
    #[serde(default, rename = "drilling_images", skip_serializing_if = "is_zero")]
    pub quoting_image_proportion: f64,
    /// Maximum number of words of a response in these pairs.
    #[serde(default = "default_max_claim_words", rename = "claim_words")]
    pub max_claim_words: usize,
    /// Proportion of invented words in these pairs and in the lists of `copying`: parts of several words,
    /// random letters, numbers, or characters of other scripts. They teach the panel to quote words that it
    /// never saw.
    #[serde(default, rename = "invented", skip_serializing_if = "is_zero")]
    pub invented_proportion: f64,
    /// Proportion of the other pairs that train the consistency of findings: the panel should predict the same
    /// finding in both presentation orders. Most of these pairs have no right answer. Their question
    /// consists of parts of two questions about a third image, or their responses are random words.
    #[serde(default, rename = "consistent", skip_serializing_if = "is_zero")]
    pub consistency_proportion: f64,
    /// Proportion of factual analyses of data set answers that contain a wrong finding. The finding
    /// has no loss, but the claim and the score do. The findings of a small model on real images
    /// are often wrong, so its scores must not rely on them.
    #[serde(default = "default_wrong_finding_proportion", rename = "doubting")]
    pub wrong_finding_proportion: f64,
    /// Proportion of pairs in which a response contains text that does not belong to it: unreadable
    /// strings, repetitions, code, or praise of itself. The panel learns that such text is a defect.
    #[serde(default, rename = "foreign", skip_serializing_if = "is_zero")]
    pub foreign_proportion: f64,
    /// The same proportion of phantom pairs, if it differs from that of the data sets.
    #[serde(default, rename = "foreign_phantoms", skip_serializing_if = "Option::is_none")]
    pub foreign_phantom_proportion: Option<f64>,
    /// Maximum number of sentences about something else in foreign text.
    #[serde(default = "default_max_padding", rename = "padding")]
    pub max_padding: usize,
    /// Proportion of foreign texts in other scripts or with varied sentences.
    #[serde(default, rename = "varied", skip_serializing_if = "is_zero")]
    pub varied_proportion: f64,
    /// Proportion of pairs of the data sets with long answers, as models write them: the claim in a
    /// sentence among others, hedges, refusals and contradictions. Their length does not depend on
    /// whether they are right.
    #[serde(default, rename = "long", skip_serializing_if = "is_zero")]
    pub long_answer_proportion: f64,
    /// Proportion of wrong answers of the data sets that have nothing to do with the question.
    #[serde(default, rename = "unrelated", skip_serializing_if = "is_zero")]
    pub unrelated_answer_proportion: f64,
    /// Proportion of wrong answers of the data sets that answer any question of the same type. The others
    /// answer a similar question.
    #[serde(default, rename = "other", skip_serializing_if = "is_zero")]
    pub other_answer_proportion: f64,
    /// Proportion of pairs that also train expression, relevance or the conclusion, sampled
    /// separately for each of the three. These members do not need the image and learn much faster
    /// than medical knowledge.
    #[serde(default = "default_easy_proportion", rename = "easy")]
    pub easy_proportion: f64,
    /// Begins the completions of an evaluation stage with the reward token of chosen evaluations.
    /// This trains the token's embedding before a preference stage that freezes the embedding.
    #[serde(default, rename = "rewarded", skip_serializing_if = "std::ops::Not::not")]
    pub has_reward_token: bool,
    /// Removes the reward tokens that begin the completions of the stage's file, for a training
    /// without them.
    #[serde(default, rename = "strip_tokens", skip_serializing_if = "std::ops::Not::not")]
    pub strips_reward_tokens: bool,
    /// Members to train in a `heads` or preference stage, by key; all if empty.
    #[serde(default)]
    pub members: Vec<String>,
    /// Member whose weights all members begin the stage with, by key. A stage that trains all members as
    /// one model can then follow stages that train them separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Earlier stage, in a stage of kind `mean`. Each weight of a member becomes the mean of its values
    /// after the stage before and after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_with: Option<String>,
    /// Names of all members. Reading a configuration sets them.
    #[serde(skip)]
    pub(crate) member_names: MemberNames,
    /// File to train on instead of generated examples, in an evaluation stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluations: Option<EvaluationConfig>,
    /// Preference pairs, in a preference stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferences: Option<PreferenceConfig>,
}

/// One of the models that a stage trains in sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StageLearner {
    /// Index of the member; `None` for all members as one model.
    pub(crate) member: Option<usize>,
    /// Name of the learner's files.
    pub(crate) name: String,
}

impl StageConfig {
    /// Returns true if the stage trains each member separately.
    pub(crate) fn is_per_member(&self) -> bool {
        match &self.preferences {
            Some(preferences) => !preferences.is_joint,
            None => self.kind == StageKind::Heads,
        }
    }

    /// Returns true if the stage trains all members as one model.
    pub(crate) fn trains_one_model(&self) -> bool {
        !self.is_per_member() && !self.is_mean()
    }

    /// Returns true if the stage trains nothing and averages the weights of two stages.
    pub(crate) fn is_mean(&self) -> bool {
        self.kind == StageKind::Mean
    }

    /// Returns true if a reward token begins the completions of the trained members from this stage
    /// on.
    pub(crate) fn trains_reward_tokens(&self) -> bool {
        self.has_reward_token || self.kind.reward_token_role() != RewardTokenRole::Absent
    }

    /// Returns true if the stage trains with reward tokens or removes them from its file.
    pub(crate) fn needs_reward_tokens(&self) -> bool {
        self.trains_reward_tokens() || self.strips_reward_tokens
    }

    /// Returns true if the stage reads its examples from a file.
    pub(crate) fn reads_file(&self) -> bool {
        let has_preference_file = self.preferences.as_ref().is_some_and(|p| p.file.is_some());
        self.evaluations.is_some() || has_preference_file
    }

    /// Returns the indices of the members that the stage trains.
    pub(crate) fn member_indices(&self) -> Vec<usize> {
        let is_selected =
            |name: &str| self.members.is_empty() || self.members.iter().any(|m| m == name);
        let names = self.member_names.all().into_iter().enumerate();
        names.filter(|(_, name)| is_selected(name)).map(|(i, _)| i).collect()
    }

    /// Returns the index of the member whose weights all members begin with.
    pub(crate) fn source_member(&self) -> Option<usize> {
        self.member_names.index(self.from.as_ref()?).ok()
    }

    /// Returns the models that the stage trains, in order.
    pub(crate) fn learners(&self) -> Vec<StageLearner> {
        if self.is_mean() {
            return Vec::new();
        }
        if !self.is_per_member() {
            return vec![StageLearner { member: None, name: self.name.clone() }];
        }
        let learner = |i: usize| StageLearner {
            member: Some(i),
            name: format!("{}.{}", self.name, self.member_names.get(i)),
        };
        self.member_indices().into_iter().map(learner).collect()
    }

    /// Returns this stage with the learning rate, warmup, clipping and validation interval of
    /// another.
    pub(crate) fn with_schedule_of(&self, other: &Self) -> Self {
        Self {
            learning_rate: other.learning_rate,
            warmup: other.warmup,
            clip_norm: other.clip_norm,
            validate_every: other.validate_every,
            ..self.clone()
        }
    }

    /// Returns true if this kind of stage trains the weight of this name when it is not frozen. A
    /// checkpoint may have weights of other stages, such as the attribute classifier, and blocks of
    /// the vision tower after the one whose output the projector reads. They get no gradient.
    pub(crate) fn trains_weight(&self, name: &str, model: &ModelConfig) -> bool {
        let in_tower = name.starts_with("model.vision_tower.");
        let in_classifier = name.starts_with("observer.");
        // The features of CLIP are hidden states before this norm, so it gets no gradient.
        let is_unused = name.contains("post_layernorm") || model.is_unused_block(name);
        match self.kind {
            StageKind::Encoder => (in_tower || in_classifier) && !is_unused,
            _ => !in_classifier && !is_unused,
        }
    }

    /// Returns the number of steps between validations.
    pub(crate) fn validation_interval(&self) -> u64 {
        let validations = (self.steps / STEPS_PER_VALIDATION).clamp(1, MAX_VALIDATIONS);
        let default_interval = self.steps.div_ceil(validations);
        self.validate_every.unwrap_or(default_interval).max(1)
    }

    /// Returns the name prefixes of all frozen weights.
    pub(crate) fn frozen_prefixes(&self) -> Vec<String> {
        let mut frozen = self.frozen.clone();
        // Adapters are in decoder layers only, so a stage with adapters freezes all modules before
        // the decoder.
        let layers = self.frozen_layers.or(self.lora.as_ref().map(|_| 0));
        if let Some(layers) = layers {
            let below = [
                "model.vision_tower.",
                "model.mm_projector.",
                "model.image_newline",
                "model.embed_tokens.",
                "observer.",
            ];
            frozen.extend(below.map(str::to_owned));
            frozen.extend((0..layers).map(|i| format!("model.layers.{i}.")));
        }
        frozen
    }

    /// Returns the lower part of a model with this number of decoder layers that the stage does not
    /// train.
    pub(crate) fn frozen_part(&self, decoder_layers: usize) -> FrozenPart {
        let frozen = self.frozen_prefixes();
        let is_frozen = |name: &str| frozen.iter().any(|prefix| name.starts_with(prefix));
        if !is_frozen("model.vision_tower.") {
            return FrozenPart::Nothing;
        }
        if !(is_frozen("model.mm_projector.") && is_frozen("model.embed_tokens.")) {
            return FrozenPart::VisionTower;
        }
        let first_trained = (0..decoder_layers).find(|i| !is_frozen(&format!("model.layers.{i}.")));
        FrozenPart::Trunk(first_trained.unwrap_or(decoder_layers))
    }
}

fn default_warmup() -> u64 {
    100
}

fn default_clip_norm() -> f64 {
    1.0
}

fn default_wrong_finding_proportion() -> f64 {
    0.25
}

fn default_easy_proportion() -> f64 {
    0.15
}

fn default_max_claim_words() -> usize {
    4
}

fn default_max_padding() -> usize {
    6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_stages_validate_less_often() {
        let interval = |steps: u64, validate_every: Option<u64>| {
            let text =
                format!("name = \"a\"\nkind = \"sft\"\nsteps = {steps}\nbatch = 1\nrate = 1.0");
            let stage: StageConfig = toml::from_str(&text).unwrap();
            StageConfig { validate_every, ..stage }.validation_interval()
        };
        // Once at the end, twice, eight times.
        assert_eq!([30, 100, 400, 4000].map(|steps| interval(steps, None)), [30, 50, 50, 500]);
        assert_eq!(interval(30, Some(4)), 4);
        assert_eq!(interval(30, Some(0)), 1);
    }
}
