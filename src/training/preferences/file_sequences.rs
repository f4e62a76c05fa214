//! Turns the preference pairs and evaluations of a file into sequences.

use std::path::Path;

use acem3_experts::TextTokenizer;
use acem3_experts::prompt::{Piece, Slot, StagedPrompt};
use acem3_experts::train::Sequence;
use acem3_vision::{ImageProcessor, Limits, decode};
use anyhow::{Context, Result, bail};

use super::evaluations_file::EvaluationExample;
use super::preference_sequence::PreferenceSequence;
use super::preferences_file::PreferencePair;
use crate::training::config::reward_token::{REWARD_TOKENS, RewardTokenRole};
use crate::training::examples::pixels::{Pixels, preprocess};

/// Builds sequences from lines of a file.
pub struct FileSequenceBuilder<'a> {
    /// The panel's tokenizer.
    pub tokenizer: &'a TextTokenizer,
    /// Image preprocessing.
    pub processor: &'a ImageProcessor,
    /// Image tokens per image.
    pub image_tokens: usize,
    /// Role of the reward tokens before completions.
    pub reward: RewardTokenRole,
}

/// Text before every completion of a stage.
#[derive(Clone, Copy)]
pub(crate) struct CompletionPrefix<'a> {
    /// Text that the chat template puts before a completion.
    pub(crate) template: &'a str,
    /// Reward token after it; may be empty.
    pub(crate) reward_token: &'a str,
}

impl FileSequenceBuilder<'_> {
    /// Builds the sequence of a pair: branch 1 is the chosen completion, branch 2 the rejected one. As in TRL, every
    /// token of a completion has a loss, except a reward token that is context.
    ///
    /// # Errors
    /// If a reward token is missing or not expected, or the image cannot be read.
    pub fn preference(&self, pair: &PreferencePair) -> Result<Sequence> {
        check_reward_tokens(pair, self.reward)?;
        let mut sequence = self.prompt(&pair.prompt, pair.image.as_deref())?;
        for (text, token) in pair.completions.iter().zip(REWARD_TOKENS) {
            let context = match self.reward {
                RewardTokenRole::Context => self.tokenizer.fixed(token)?.len(),
                RewardTokenRole::Absent | RewardTokenRole::Target => 0,
            };
            self.add_branch(&mut sequence, text, context)?;
        }
        Ok(sequence)
    }

    /// Builds the sequence of an evaluation. The reward token is added if the text does not begin with it; the prefix
    /// has no loss then.
    pub(crate) fn evaluation(
        &self,
        evaluation: &EvaluationExample,
        prefix: CompletionPrefix,
    ) -> Result<Sequence> {
        let mut sequence = self.prompt(&evaluation.prompt, evaluation.image.as_deref())?;
        let CompletionPrefix {
            template,
            reward_token,
        } = prefix;
        if reward_token.is_empty() {
            self.add_branch(&mut sequence, &evaluation.text, 0)?;
            return Ok(sequence);
        }
        let text = &evaluation.text;
        let text = text.strip_prefix(template).unwrap_or(text);
        let text = text.strip_prefix(reward_token).unwrap_or(text);
        let prefix = format!("{template}{reward_token}");
        let context = self.tokenizer.fixed(&prefix)?.len();
        self.add_branch(&mut sequence, &(prefix + text), context)?;
        Ok(sequence)
    }

    /// Adds a completion as a branch; its first tokens are context without a loss.
    fn add_branch(&self, sequence: &mut Sequence, text: &str, context: usize) -> Result<()> {
        let tokens = self.tokenizer.fixed(text)?.into_iter().enumerate();
        let weight = |i| if i < context { 0.0 } else { 1.0 };
        sequence.branch(tokens.map(|(i, token)| (token, weight(i))));
        Ok(())
    }

    /// Starts a sequence with a prompt.
    fn prompt(&self, prompt: &[Piece], image: Option<&Path>) -> Result<Sequence> {
        let image = image.map(|path| self.load_image(path)).transpose()?;
        let prompt = StagedPrompt::new(prompt, self.tokenizer)?;
        let mut prompt: Vec<Slot> = prompt.slots().collect();
        // A prompt written for TRL may contain the start tokens, which must not be doubled.
        let start = self.tokenizer.start().iter().copied().map(Slot::Token);
        let start: Vec<Slot> = start.collect();
        if prompt[start.len()..].starts_with(&start) {
            prompt.drain(..start.len());
        }
        Ok(Sequence::new(&prompt, image, self.image_tokens))
    }

    /// Builds the sequences of a pair for those of these members that train on it.
    pub(crate) fn preferences(
        &self,
        pair: &PreferencePair,
        members: &[usize],
    ) -> Result<Vec<PreferenceSequence>> {
        let members = members.iter().copied();
        let members: Vec<usize> = members.filter(|member| pair.is_for(*member)).collect();
        if members.is_empty() {
            return Ok(Vec::new());
        }
        let sequence = self.preference(pair)?;
        let separate = members.into_iter().map(|member| PreferenceSequence {
            sequence: sequence.clone(),
            members: vec![member],
        });
        Ok(separate.collect())
    }

    fn load_image(&self, path: &Path) -> Result<Pixels> {
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let image =
            decode(&bytes, &Limits::default()).with_context(|| path.display().to_string())?;
        preprocess(&image, self.processor)
    }
}

/// Checks that completions begin with reward tokens if and only if the stage uses them.
pub(crate) fn check_reward_tokens(pair: &PreferencePair, role: RewardTokenRole) -> Result<()> {
    for (text, token) in pair.completions.iter().zip(REWARD_TOKENS) {
        let has_token = text.starts_with(token);
        if has_token == (role == RewardTokenRole::Absent) {
            bail!(
                "a completion {} with {token}\n\
                 hint: kinds \"rtdpo\" and \"adto\" require completions with reward tokens \
                 (`acem3 data preferences --reward-tokens`), kind \"dpo\" completions without",
                if has_token {
                    "begins"
                } else {
                    "does not begin"
                }
            );
        }
    }
    Ok(())
}
