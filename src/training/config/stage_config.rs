//! One stage of a training: what it learns, from what, and what stays as it is.

use std::path::{Path, PathBuf};

use acem3_experts::decoder::DecoderConfig;
use acem3_experts::train::Lora;
use anyhow::{Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use super::preference_config::PreferenceConfig;
use crate::checkpoints::panel::definition::MEMBERS;
use crate::training::preferences::data::REWARD_TOKENS;
use crate::training::preferences::preference_sequence::RewardTokenRole;
use crate::training::stages::evaluation_set::EvaluationConfig;
use crate::training::stages::stage::VALIDATION_AT;

/// Most examples of a step: all of them are in memory at once.
const MOST_EXAMPLES: usize = 1 << 16;

/// One stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageConfig {
    /// The name of its checkpoint.
    pub name: String,
    /// What is learned.
    pub kind: StageKind,
    /// Optimisation steps.
    pub steps: u64,
    /// Sequences (or images) in a step.
    pub batch: usize,
    /// Highest learning rate.
    pub rate: f64,
    /// Steps of warm-up.
    #[serde(default = "hundred")]
    pub warmup: u64,
    /// Norm to which gradients are clipped.
    #[serde(default = "one")]
    pub clip: f64,
    /// Steps between validations, of which the best weights are kept; an eighth of all where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validate_every: Option<u64>,
    /// Weights whose names begin so stay as they are.
    #[serde(default)]
    pub frozen: Vec<String>,
    /// So many of the decoder's lower layers stay as they are, and all that lies before them: the
    /// tower, the projector and the embedding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen_layers: Option<usize>,
    /// Instead of the weights themselves, narrow matrices beside those of the decoder's layers that are
    /// not frozen are trained (`rank`, `alpha`, `targets`); everything else stays as it is. What the stage
    /// leaves has them added, and is of the same form as any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lora: Option<Lora>,
    /// The share of examples that come from the data sets; the others are phantoms.
    #[serde(default)]
    pub real: f64,
    /// The share of question-answering sequences in a stage of evaluations.
    #[serde(default)]
    pub answering: f64,
    /// The share of sequences in which given claims and findings are compared, without a case.
    #[serde(default)]
    pub comparing: f64,
    /// The share of pairs of random words, which teach to quote and to compare.
    #[serde(default)]
    pub drilling: f64,
    /// The share of wrong findings put into the factual analyses of real answers, to be read and not
    /// to be learned (the claim before them is). A small model's own findings on real images are often wrong, and its scores
    /// should allow for that.
    #[serde(default = "quarter")]
    pub doubting: f64,
    /// How often a pair teaches expression, relevance and the conclusion, each, beside medical
    /// knowledge: they need no look at the image, and are learned much sooner.
    #[serde(default = "seldom")]
    pub easy: f64,
    /// Whether the texts of a stage of evaluations begin with the reward token of right ones. Where the embedding is frozen
    /// when preferences are learned, a token that the model never read stays a stranger to it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub rewarded: bool,
    /// The members that a stage of heads trains, by the names of their files; all where empty.
    #[serde(default)]
    pub members: Vec<String>,
    /// What a stage of evaluations learns from in place of drawn examples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluations: Option<EvaluationConfig>,
    /// What a stage of preferences learns from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferences: Option<PreferenceConfig>,
}

/// What a stage learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageKind {
    /// The vision tower, alone, on attributes of images.
    Encoder,
    /// Answering questions through projector and decoder.
    Align,
    /// Writing evaluations and conclusions, all members as one.
    Sft,
    /// The head of each member, the rest being frozen.
    Heads,
    /// To prefer right evaluations to worse ones (Rafailov et al., 2023).
    Dpo,
    /// The same, each evaluation beginning with a reward token that is learned too (ACE-M³ §3.4).
    Rtdpo,
    /// The same, the reward token being part of what is given (`HDCEval` §3.3).
    Adto,
}

impl StageKind {
    /// Whether preferences are learned.
    pub fn prefers(self) -> bool {
        matches!(self, Self::Dpo | Self::Rtdpo | Self::Adto)
    }

    /// What the reward token before an evaluation is.
    pub(crate) fn reward(self) -> RewardTokenRole {
        match self {
            Self::Rtdpo => RewardTokenRole::Target,
            Self::Adto => RewardTokenRole::Context,
            _ => RewardTokenRole::Absent,
        }
    }
}

impl StageConfig {
    /// Whether each member is trained by itself.
    pub(crate) fn by_member(&self) -> bool {
        match &self.preferences {
            Some(preferences) => !preferences.together,
            None => self.kind == StageKind::Heads,
        }
    }

    /// What the texts of the members that it trains begin with from then on.
    pub(crate) fn lead(&self) -> Option<&'static str> {
        let rewarded = self.rewarded || self.kind.reward() != RewardTokenRole::Absent;
        rewarded.then_some(REWARD_TOKENS[0])
    }

    /// The places of the members that are trained.
    pub(crate) fn member_places(&self) -> Vec<usize> {
        let named = |name| self.members.is_empty() || self.members.iter().any(|m| m == name);
        (0..MEMBERS.len()).filter(|i| named(MEMBERS[*i])).collect()
    }

    /// Who learns, one after the other, and what each one's files are called; `None` for all members as one.
    pub(crate) fn learners(&self) -> Vec<(Option<usize>, String)> {
        if !self.by_member() {
            return vec![(None, self.name.clone())];
        }
        let places = self.member_places().into_iter();
        let named = |i: usize| (Some(i), format!("{}.{}", self.name, MEMBERS[i]));
        places.map(named).collect()
    }

    /// The same stage with the rates, the clipping and the validations of another.
    pub(crate) fn at_the_pace_of(&self, other: &Self) -> Self {
        Self {
            rate: other.rate,
            warmup: other.warmup,
            clip: other.clip,
            validate_every: other.validate_every,
            ..self.clone()
        }
    }

    /// Whether all that it leaves lies in a folder.
    pub(crate) fn is_finished(&self, out: &Path) -> bool {
        let left = |(_, name): &(Option<usize>, String)| checkpoint(out, name).exists();
        self.learners().iter().all(left)
    }

    /// Whether a weight is one that a stage of this kind trains if it is not frozen. Those of other stages (the
    /// observer's, say) may lie in the same checkpoint; they get no gradient.
    pub(crate) fn owns(&self, name: &str) -> bool {
        let tower = name.starts_with("model.vision_tower.");
        let observes = name.starts_with("observer.");
        let unused = name.contains("post_layernorm");
        match self.kind {
            StageKind::Encoder => (tower || observes) && !unused,
            _ => !observes && !unused,
        }
    }

    /// Steps between validations.
    pub(crate) fn validation(&self) -> u64 {
        let eighth = self.steps.div_ceil(8);
        self.validate_every.unwrap_or(eighth).max(1)
    }

    fn check_lora(&self, decoder: &DecoderConfig) -> Result<()> {
        let Some(lora) = &self.lora else {
            return Ok(());
        };
        if self.kind == StageKind::Encoder {
            bail!(
                "[stages.lora] adapts the decoder, which a stage of kind \"encoder\" does not train\n\
                 hint: leave it out here"
            );
        }
        lora.check(decoder, &self.frozen())
            .map_err(|problem| anyhow!("[stages.lora]: {problem}"))
    }

    /// The beginnings of the names of weights that stay as they are.
    pub(crate) fn frozen(&self) -> Vec<String> {
        let mut frozen = self.frozen.clone();
        // Adapters lie in the decoder's layers, so that all before the first of these is frozen.
        let layers = self.frozen_layers.or(self.lora.as_ref().map(|_| 0));
        if let Some(layers) = layers {
            let below = [
                "model.vision_tower.",
                "model.mm_projector.",
                "model.embed_tokens.",
                "observer.",
            ];
            frozen.extend(below.map(str::to_owned));
            frozen.extend((0..layers).map(|i| format!("model.layers.{i}.")));
        }
        frozen
    }

    /// How much of the model, from the pixels on, this stage leaves as it is.
    pub(crate) fn cut(&self, layers: usize) -> FrozenPart {
        let frozen = self.frozen();
        let stays = |name: &str| frozen.iter().any(|beginning| name.starts_with(beginning));
        if !stays("model.vision_tower.") {
            return FrozenPart::Pixels;
        }
        if !(stays("model.mm_projector.") && stays("model.embed_tokens.")) {
            return FrozenPart::Features;
        }
        let open = (0..layers).find(|i| !stays(&format!("model.layers.{i}.")));
        FrozenPart::Trunk(open.unwrap_or(layers))
    }

    /// Whether it can be run on a decoder.
    pub(crate) fn check(&self, decoder: &DecoderConfig) -> Result<()> {
        for (name, value) in [
            ("batch", self.batch as f64),
            ("steps", self.steps as f64),
            ("rate", self.rate),
            ("clip", self.clip),
        ] {
            if !(value.is_finite() && value > 0.0) {
                bail!("{name} is {value}, expected a positive number");
            }
        }
        if self.batch > MOST_EXAMPLES {
            bail!("batch is {}, expected at most {MOST_EXAMPLES}", self.batch);
        }
        let examples = self.steps.checked_mul(self.batch as u64);
        if examples.is_none_or(|n| n > VALIDATION_AT) {
            bail!(
                "steps is {}, which with a batch of {} makes more than {VALIDATION_AT} examples, expected fewer",
                self.steps,
                self.batch
            );
        }
        let shares = [
            self.real,
            self.answering,
            self.comparing,
            self.drilling,
            self.doubting,
            self.easy,
        ];
        if !shares.iter().all(|share| (0.0..=1.0).contains(share)) {
            bail!("real, answering, comparing, drilling, doubting and easy are shares from 0 to 1");
        }
        let known = |name: &String| MEMBERS.contains(&name.as_str());
        if let Some(name) = self.members.iter().find(|name| !known(name)) {
            let known = MEMBERS.join(", ");
            bail!("no member is called {name:?}; they are {known}");
        }
        if self.kind != StageKind::Heads && !self.kind.prefers() && !self.members.is_empty() {
            bail!("a stage that trains all members as one names none");
        }
        let layers = decoder.num_hidden_layers;
        if let Some(frozen) = self.frozen_layers
            && frozen >= layers
        {
            bail!("frozen_layers is {frozen}, expected fewer than the decoder's {layers} layers");
        }
        let writes = matches!(self.kind, StageKind::Sft | StageKind::Heads);
        if self.evaluations.is_some() && !writes {
            bail!("[stages.evaluations] belongs to a stage of kind \"sft\" or \"heads\"");
        }
        let stores = self.evaluations.as_ref().is_some_and(|e| e.store.is_some());
        if stores && self.cut(layers) == FrozenPart::Pixels {
            bail!(
                "[stages.evaluations]: store keeps what frozen layers compute, and the vision tower is not frozen\n\
                 hint: `frozen_layers = N` freezes N layers of the decoder and all before them; or leave store out"
            );
        }
        if self.rewarded && !writes {
            bail!(
                "rewarded belongs to a stage of kind \"sft\" or \"heads\"\n\
                 hint: kinds \"rtdpo\" and \"adto\" have reward tokens without it"
            );
        }
        self.check_lora(decoder)?;
        match (&self.preferences, self.kind.prefers()) {
            (Some(preferences), true) => {
                preferences.check()?;
                let places = self.member_places();
                preferences.check_ways(places.into_iter().map(|place| MEMBERS[place]))
            }
            (None, false) => Ok(()),
            (None, true) => bail!(
                "preferences need a table [stages.preferences]\n\
                 hint: `cases = 1000` in it is enough"
            ),
            (Some(_), false) => bail!(
                "[stages.preferences] belongs to a stage of kind \"rtdpo\", \"adto\" or \"dpo\""
            ),
        }
    }
}

/// Up to where a model is frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrozenPart {
    /// Nothing is.
    Pixels,
    /// The vision tower is.
    Features,
    /// So many layers of the decoder are, and all before them.
    Trunk(usize),
}

impl FrozenPart {
    /// Layers of the decoder that are frozen.
    pub(crate) fn depth(self) -> usize {
        match self {
            Self::Trunk(depth) => depth,
            Self::Features | Self::Pixels => 0,
        }
    }
}

/// Where the weights of a finished stage lie, whose files are called `name`.
pub(crate) fn checkpoint(out: &Path, name: &str) -> PathBuf {
    out.join(format!("{name}.safetensors"))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(value: &bool) -> bool {
    !value
}

fn hundred() -> u64 {
    100
}

fn one() -> f64 {
    1.0
}

fn quarter() -> f64 {
    0.25
}

fn seldom() -> f64 {
    0.15
}
