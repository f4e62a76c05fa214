//! Preferences and evaluations of a file, written as sequences.

use std::path::Path;

use acem3_experts::TextTokenizer;
use acem3_experts::prompt::{Piece, Slot, StagedPrompt};
use acem3_experts::train::Sequence;
use acem3_vision::{ImageProcessor, Limits, decode};
use anyhow::{Context, Result, bail};

use crate::training::examples::example::Pixels;
use crate::training::examples::pixels::pixels;
use crate::training::preferences::data::{EvaluationExample, PreferencePair, REWARD_TOKENS};
use crate::training::preferences::preference_sequence::{PreferenceSequence, RewardTokenRole};

/// How pairs are turned into sequences.
pub struct FileSequenceBuilder<'a> {
    /// What texts become tokens with.
    pub tokenizer: &'a TextTokenizer,
    /// How images are prepared.
    pub processor: &'a ImageProcessor,
    /// Places that an image takes.
    pub image_tokens: usize,
    /// What the reward tokens before continuations are.
    pub reward: RewardTokenRole,
}

impl FileSequenceBuilder<'_> {
    /// The pair as a sequence: branch 1 is preferred, branch 2 rejected. Every token of a continuation is
    /// learned, as TRL does, but for a reward token that is given.
    pub fn sequence(&self, pair: &PreferencePair) -> Result<Sequence> {
        rewarded(pair, self.reward)?;
        let mut sequence = self.begin(&pair.prompt, pair.image.as_deref())?;
        for (text, reward) in pair.texts.iter().zip(REWARD_TOKENS) {
            let given = match self.reward {
                RewardTokenRole::Context => self.tokenizer.fixed(reward)?.len(),
                RewardTokenRole::Absent | RewardTokenRole::Target => 0,
            };
            let tokens = self.tokenizer.fixed(text)?.into_iter().enumerate();
            sequence.branch(tokens.map(|(i, token)| (token, if i < given { 0.0 } else { 1.0 })));
        }
        Ok(sequence)
    }

    /// A prompt with the one text that is to follow it. Behind what answers in the dialogue begin with comes a
    /// reward token, where there is one, if the text does not bring it; it is given and not learned.
    pub(crate) fn evaluation(
        &self,
        evaluation: &EvaluationExample,
        [answer, reward]: [&str; 2],
    ) -> Result<Sequence> {
        let mut sequence = self.begin(&evaluation.prompt, evaluation.image.as_deref())?;
        let (mut text, mut given) = (evaluation.text.clone(), 0);
        if !reward.is_empty() {
            let bare = text.strip_prefix(answer).unwrap_or(&text);
            let bare = bare.strip_prefix(reward).unwrap_or(bare);
            let lead = format!("{answer}{reward}");
            given = self.tokenizer.fixed(&lead)?.len();
            text = lead + bare;
        }
        let tokens = self.tokenizer.fixed(&text)?.into_iter().enumerate();
        sequence.branch(tokens.map(|(i, token)| (token, if i < given { 0.0 } else { 1.0 })));
        Ok(sequence)
    }

    /// A prompt about an image.
    fn begin(&self, prompt: &[Piece], image: Option<&Path>) -> Result<Sequence> {
        let image = image.map(|path| self.image(path)).transpose()?;
        let prompt = StagedPrompt::new(prompt, self.tokenizer)?;
        let mut prompt: Vec<Slot> = prompt.slots().collect();
        // A prompt written for TRL may name the tokens that begin every text; once is enough.
        let start = self.tokenizer.start().iter().copied().map(Slot::Token);
        let start: Vec<Slot> = start.collect();
        if prompt[start.len()..].starts_with(&start) {
            prompt.drain(..start.len());
        }
        Ok(Sequence::new(&prompt, image, self.image_tokens))
    }

    /// The pair for those of these members that learn from it.
    pub(crate) fn contrasts(
        &self,
        pair: &PreferencePair,
        members: &[usize],
    ) -> Result<Vec<PreferenceSequence>> {
        let learning: Vec<usize> = match pair.member {
            Some(member) => members.iter().copied().filter(|m| *m == member).collect(),
            None => members.to_vec(),
        };
        if learning.is_empty() {
            return Ok(Vec::new());
        }
        let sequence = self.sequence(pair)?;
        let alone = learning.into_iter().map(|member| PreferenceSequence {
            sequence: sequence.clone(),
            members: vec![member],
        });
        Ok(alone.collect())
    }

    fn image(&self, path: &Path) -> Result<Pixels> {
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let image =
            decode(&bytes, &Limits::default()).with_context(|| path.display().to_string())?;
        pixels(&image, self.processor)
    }
}

/// Refuses continuations that begin with reward tokens which a kind of preferences has no use for, or without them.
pub(crate) fn rewarded(pair: &PreferencePair, reward: RewardTokenRole) -> Result<()> {
    for (text, token) in pair.texts.iter().zip(REWARD_TOKENS) {
        let begins = text.starts_with(token);
        if begins == (reward == RewardTokenRole::Absent) {
            bail!(
                "a continuation {} with {token}\n\
                 hint: kinds \"rtdpo\" and \"adto\" learn from continuations that begin with reward tokens \
                 (`acem3 data preferences --reward-tokens`), \"dpo\" from such as do not",
                if begins { "begins" } else { "does not begin" }
            );
        }
    }
    Ok(())
}
