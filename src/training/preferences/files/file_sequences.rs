//! Builds sequences from the preference pairs and evaluations of a file.

use std::path::Path;

use acem3_experts::TextTokenizer;
use acem3_experts::prompt::{
    CompletionPart, KnowledgePrompt, PAIR_TEXTS, PromptPiece, PromptToken, StagedPrompt,
};
use acem3_experts::train::{Sequence, TrainingImage};
use anyhow::{Result, bail};

use super::evaluations_file::EvaluationExample;
use super::preferences_file::PreferencePair;
use crate::data::images::decoder::load_image_file;
use crate::training::config::stage::reward_token::{REWARD_TOKENS, RewardTokenRole};
use crate::training::examples::sources::pixels::ImagePreparation;
use crate::training::preferences::preference_sequence::PreferenceSequence;

/// Builder of sequences from lines of a file.
pub struct FileSequenceBuilder<'a> {
    /// Tokenizer of the panel.
    pub tokenizer: &'a TextTokenizer,
    /// Image preprocessing.
    pub images: &'a ImagePreparation,
    /// Role of the reward tokens before completions.
    pub reward_token_role: RewardTokenRole,
}

/// Text before every completion of a stage.
#[derive(Clone, Copy)]
pub(crate) struct CompletionPrefix<'a> {
    /// Text that begins every completion in the chat template.
    pub(crate) template: &'a str,
    /// Reward token after that text; may be empty.
    pub(crate) reward_token: &'a str,
}

impl FileSequenceBuilder<'_> {
    /// Builds the sequence of a pair. Branch 1 is the chosen completion and branch 2 the rejected
    /// one. As in TRL, every token of a completion has a loss, except a reward token that is
    /// context.
    ///
    /// # Errors
    /// If a reward token is missing or not expected, or the image cannot be read.
    pub fn build_preference(&self, pair: &PreferencePair) -> Result<Sequence> {
        check_reward_tokens(pair, self.reward_token_role)?;
        let mut sequence = self.start_sequence(&pair.prompt, pair.image.as_deref())?;
        for (text, token) in pair.completions.iter().zip(REWARD_TOKENS) {
            let context_len = match self.reward_token_role {
                RewardTokenRole::Context => {
                    let prefix = format!("{}{token}", template_lead(text));
                    self.tokenizer.encode_trusted(&prefix)?.len()
                }
                RewardTokenRole::Absent | RewardTokenRole::Target => 0,
            };
            self.add_branch(&mut sequence, text, context_len)?;
        }
        Ok(sequence)
    }

    /// Builds the sequence of an evaluation. If the prefix has a reward token, the completion
    /// begins with the prefix, which has no loss.
    pub(crate) fn build_evaluation(
        &self,
        evaluation: &EvaluationExample,
        prefix: CompletionPrefix,
    ) -> Result<Sequence> {
        let mut sequence = self.start_sequence(&evaluation.prompt, evaluation.image.as_deref())?;
        let CompletionPrefix { template, reward_token } = prefix;
        if reward_token.is_empty() {
            self.add_evaluation(&mut sequence, &evaluation.text, 0)?;
            return Ok(sequence);
        }
        let text = &evaluation.text;
        let text = text.strip_prefix(template).unwrap_or(text);
        let text = text.strip_prefix(reward_token).unwrap_or(text);
        let prefix = format!("{template}{reward_token}");
        let context_len = self.tokenizer.encode_trusted(&prefix)?.len();
        self.add_evaluation(&mut sequence, &(prefix + text), context_len)?;
        Ok(sequence)
    }

    /// Adds an evaluation as a branch. Its first `context_len` tokens have no loss, and neither has
    /// the evidence for questions, which the member reads.
    fn add_evaluation(
        &self,
        sequence: &mut Sequence,
        text: &str,
        context_len: usize,
    ) -> Result<()> {
        let prompt = KnowledgePrompt::built_in()?;
        let mut tokens = Vec::new();
        for part in prompt.split_completion(text) {
            let (ids, weight) = match part {
                CompletionPart::Written(text) => (self.tokenizer.encode_trusted(text)?, 1.0),
                CompletionPart::Evidence(passages) => {
                    (prompt.tokenize_evidence(passages, self.tokenizer)?, 0.0)
                }
            };
            tokens.extend(ids.into_iter().map(|id| (id, weight)));
        }
        tokens.iter_mut().take(context_len).for_each(|(_, weight)| *weight = 0.0);
        sequence.push_branch(tokens);
        Ok(())
    }

    /// Adds a completion as a branch. Its first `context_len` tokens have no loss.
    fn add_branch(&self, sequence: &mut Sequence, text: &str, context_len: usize) -> Result<()> {
        let tokens = self.tokenizer.encode_trusted(text)?.into_iter().enumerate();
        let weight = |i| if i < context_len { 0.0 } else { 1.0 };
        sequence.push_branch(tokens.map(|(i, token)| (token, weight(i))));
        Ok(())
    }

    /// Starts a sequence with a prompt.
    fn start_sequence(&self, prompt: &[PromptPiece], image: Option<&Path>) -> Result<Sequence> {
        let image = image.map(|path| self.load_image(path)).transpose()?;
        let prompt = StagedPrompt::new(prompt, PAIR_TEXTS, self.tokenizer)?;
        let mut prompt: Vec<PromptToken> = prompt.tokens().collect();
        // A prompt in a TRL file may already contain the start tokens, which must not be doubled.
        let start_tokens = self.tokenizer.bos_tokens().iter().copied().map(PromptToken::Token);
        let start_tokens: Vec<PromptToken> = start_tokens.collect();
        if prompt[start_tokens.len()..].starts_with(&start_tokens) {
            prompt.drain(..start_tokens.len());
        }
        Ok(Sequence::new(&prompt, image))
    }

    /// Builds one sequence of a pair for each of these members.
    pub(crate) fn build_preferences(
        &self,
        pair: &PreferencePair,
        members: &[usize],
    ) -> Result<Vec<PreferenceSequence>> {
        if members.is_empty() {
            return Ok(Vec::new());
        }
        let sequence = self.build_preference(pair)?;
        let sequences = members.iter().map(|member| PreferenceSequence {
            sequence: sequence.clone(),
            members: vec![*member],
        });
        Ok(sequences.collect())
    }

    /// Reads and preprocesses an image file.
    fn load_image(&self, path: &Path) -> Result<TrainingImage> {
        self.images.prepare(&load_image_file(path)?)
    }
}

/// Returns the white space that begins a completion in some chat templates.
fn template_lead(text: &str) -> &str {
    text.get(..text.len() - text.trim_start().len()).unwrap_or_default()
}

/// Checks that completions begin with reward tokens if and only if the stage uses them.
pub(crate) fn check_reward_tokens(pair: &PreferencePair, role: RewardTokenRole) -> Result<()> {
    for (text, token) in pair.completions.iter().zip(REWARD_TOKENS) {
        let has_token = text.trim_start().starts_with(token);
        if has_token == (role == RewardTokenRole::Absent) {
            bail!(
                "a completion {} with {token}\n\
                 hint: kinds \"rtdpo\" and \"adto\" require completions with reward tokens \
                 (`acem3 data preferences --reward-tokens`), kind \"dpo\" completions without",
                if has_token { "begins" } else { "does not begin" }
            );
        }
    }
    Ok(())
}
