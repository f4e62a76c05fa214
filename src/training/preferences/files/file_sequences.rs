//! Builds sequences from the preference pairs and evaluations of a file.

use std::path::Path;

use acem3_experts::TextTokenizer;
use acem3_experts::prompt::{
    CompletionPart, KnowledgePrompt, PAIR_TEXTS, PromptPiece, PromptToken, StagedPrompt,
};
use acem3_experts::train::{Sequence, TrainingImage};
use anyhow::{Context, Result, bail};

use super::evaluations_file::EvaluationExample;
use super::preferences_file::PreferencePair;
use crate::data::images::decoder::load_image_file;
use crate::training::config::reward_tokens::{RewardTokenPair, RewardTokens};
use crate::training::config::stage::reward_token::RewardTokenRole;
use crate::training::examples::sources::pixels::ImagePreparation;
use crate::training::preferences::preference_sequence::PreferenceSequence;

/// What to do about a file whose reward tokens do not fit the kind of the stage.
const KIND_HINT: &str = "hint: kinds \"rtdpo\" and \"adto\" require completions with the reward tokens of the configuration \
     (`acem3 data preferences --reward-tokens-of CONFIG`), kind \"dpo\" completions without; `strip_tokens = true` \
     removes them from the file of a \"dpo\" stage";

/// Builder of sequences from lines of a file.
pub struct FileSequenceBuilder<'a> {
    /// Tokenizer of the panel.
    pub tokenizer: &'a TextTokenizer,
    /// Image preprocessing.
    pub images: &'a ImagePreparation,
    /// Role of the reward tokens before completions.
    pub reward_token_role: RewardTokenRole,
    /// Reward tokens of the members.
    pub reward_tokens: &'a RewardTokens,
    /// True to remove the reward tokens that begin the completions.
    pub strips_reward_tokens: bool,
}

/// Text before every completion of a stage.
#[derive(Clone, Copy)]
pub(crate) struct CompletionPrefix<'a> {
    /// Text that begins every completion in the chat template.
    pub(crate) template: &'a str,
    /// Reward token after that text; may be empty.
    pub(crate) reward_token: &'a str,
}

/// Returns a completion without the prefix; unchanged if it has none.
///
/// # Errors
/// It begins with another reward token.
pub(crate) fn without_prefix<'e>(
    text: &'e str,
    CompletionPrefix { template, reward_token }: CompletionPrefix,
    tokens: &RewardTokens,
) -> Result<&'e str> {
    let text = text.strip_prefix(template).unwrap_or(text);
    let text = text.strip_prefix(reward_token).unwrap_or(text);
    let known = tokens.known_texts();
    match known.iter().find(|token| text.starts_with(token.as_str())) {
        Some(other) => bail!(
            "the completion begins with {other}, expected {reward_token} or no reward token\n\
             hint: correct [reward_tokens] or the `member` of the line"
        ),
        None => Ok(text),
    }
}

impl FileSequenceBuilder<'_> {
    /// Builds the sequence of a pair. Branch 1 is the chosen completion and branch 2 the rejected
    /// one. As in TRL, every token of a completion has a loss, except a reward token that is
    /// context.
    ///
    /// # Errors
    /// If a reward token is missing or not expected, or the image cannot be read.
    pub fn build_preference(&self, pair: &PreferencePair) -> Result<Sequence> {
        self.check_reward_tokens(pair)?;
        let mut sequence = self.start_sequence(&pair.prompt, pair.image.as_deref())?;
        if self.strips_reward_tokens {
            let tokens = self.tokens_of(pair)?;
            for (text, token) in pair.completions.iter().zip(tokens.sides()) {
                self.add_branch(&mut sequence, &without_token(text, token), "")?;
            }
            return Ok(sequence);
        }
        if self.reward_token_role != RewardTokenRole::Context {
            for text in &pair.completions {
                self.add_branch(&mut sequence, text, "")?;
            }
            return Ok(sequence);
        }
        let tokens = self.tokens_of(pair)?;
        for (text, token) in pair.completions.iter().zip(tokens.sides()) {
            let prefix = format!("{}{token}", template_lead(text));
            self.add_branch(&mut sequence, text, &prefix)?;
        }
        Ok(sequence)
    }

    /// Checks that completions begin with the reward tokens of their member if and only if the stage
    /// uses or removes them.
    pub(crate) fn check_reward_tokens(&self, pair: &PreferencePair) -> Result<()> {
        let expects_token =
            self.strips_reward_tokens || self.reward_token_role != RewardTokenRole::Absent;
        let all = self.reward_tokens.known_texts();
        let found = |text: &str| {
            let text = text.trim_start();
            all.iter().filter(|token| text.starts_with(token.as_str())).max_by_key(|t| t.len())
        };
        if !expects_token {
            return match pair.completions.iter().find_map(|text| found(text)) {
                Some(token) => bail!("a completion begins with {token}\n{KIND_HINT}"),
                None => Ok(()),
            };
        }
        let tokens = self.tokens_of(pair)?;
        for (text, token) in pair.completions.iter().zip(tokens.sides()) {
            if text.trim_start().starts_with(token) {
                continue;
            }
            let Some(other) = found(text) else {
                bail!("a completion does not begin with {token}\n{KIND_HINT}");
            };
            bail!(
                "a completion begins with {other}, expected {token}\n\
                 hint: write the file with the tokens of this configuration (`acem3 data preferences \
                 --reward-tokens-of CONFIG`), or state those of the file in [reward_tokens]"
            );
        }
        Ok(())
    }

    /// Returns the reward tokens of the member of a pair.
    fn tokens_of(&self, pair: &PreferencePair) -> Result<RewardTokenPair> {
        let tokens = self.reward_tokens.of_evaluation(pair.member.as_deref());
        tokens.context(
            "the line has no `member`, and the members have different reward tokens\n\
             hint: add `member` to the line, or give all members one pair (`default` in [reward_tokens])",
        )
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
        if self.strips_reward_tokens {
            let text = self.without_good_token(evaluation);
            self.add_evaluation(&mut sequence, &text, 0)?;
            return Ok(sequence);
        }
        if reward_token.is_empty() {
            self.add_evaluation(&mut sequence, &evaluation.text, 0)?;
            return Ok(sequence);
        }
        let text = without_prefix(&evaluation.text, prefix, self.reward_tokens)?;
        let prefix = format!("{template}{reward_token}");
        let text = format!("{prefix}{text}");
        let context_len = self.context_len(&text, &prefix)?;
        self.add_evaluation(&mut sequence, &text, context_len)?;
        Ok(sequence)
    }

    /// Returns the text of an evaluation without the token of chosen evaluations, if it has one.
    fn without_good_token(&self, evaluation: &EvaluationExample) -> String {
        let of_member = match &evaluation.member {
            Some(name) => vec![self.reward_tokens.of(name).good],
            None => self.reward_tokens.good_texts(),
        };
        let text = evaluation.text.trim_start();
        let token = of_member.iter().find(|token| text.starts_with(token.as_str()));
        without_token(&evaluation.text, token.map_or("", String::as_str))
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

    /// Adds a completion as a branch. The tokens of `prefix`, which begins the text, have no loss.
    fn add_branch(&self, sequence: &mut Sequence, text: &str, prefix: &str) -> Result<()> {
        let context_len = self.context_len(text, prefix)?;
        let tokens = self.tokenizer.encode_trusted(text)?.into_iter().enumerate();
        let weight = |i| if i < context_len { 0.0 } else { 1.0 };
        sequence.push_branch(tokens.map(|(i, token)| (token, weight(i))));
        Ok(())
    }

    /// Returns the number of tokens of the prefix of a text.
    fn context_len(&self, text: &str, prefix: &str) -> Result<usize> {
        let tokens = self.tokenizer.encode_trusted(prefix)?;
        if !self.tokenizer.encode_trusted(text)?.starts_with(&tokens) {
            bail!(
                "the tokenizer merges the reward token at the end of {prefix:?} with the text after it\n\
                 hint: choose other tokens in [reward_tokens], such as texts in brackets"
            );
        }
        Ok(tokens.len())
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
            // Pairs of a file have one presentation order.
            targets: Vec::new(),
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

/// Removes a reward token that begins a text, after white space that stays.
fn without_token(text: &str, token: &str) -> String {
    let lead = template_lead(text);
    let rest = text.get(lead.len()..).unwrap_or_default();
    format!("{lead}{}", rest.strip_prefix(token).unwrap_or(rest))
}
