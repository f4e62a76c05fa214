//! Sampler for free texts.

use super::knowledge::KnowledgeCompletion;
use super::sampled_tokens::{SampledToken, distribute_samples};
use super::task::GenerationSettings;
use crate::prompt::STOP;
use crate::{Error, TextTokenizer};

/// Chooses the tokens of free texts: the most probable allowed ones.
pub(super) struct TextSampler {
    pub(super) tokenizer: TextTokenizer,
    pub(super) settings: GenerationSettings,
    /// Tokens of [`STOP`].
    pub(super) stop_tokens: Vec<u32>,
    /// Looks up questions in free texts; `None` if they are text like any other.
    pub(super) knowledge: Option<KnowledgeCompletion>,
    /// For each token of the vocabulary, true if a free text may contain it.
    allowed: Vec<bool>,
}

impl TextSampler {
    /// Creates a sampler for a model with `vocab_size` output tokens.
    ///
    /// # Errors
    /// If the tokenizer has larger token ids than the model.
    pub(super) fn new(
        tokenizer: TextTokenizer,
        vocab_size: usize,
        settings: GenerationSettings,
    ) -> Result<Self, Error> {
        let id_limit = tokenizer.id_limit();
        if id_limit as usize > vocab_size {
            return Err(Error::Tokenizer(format!(
                "token ids up to {}, expected less than {vocab_size}, the model's vocabulary size",
                id_limit - 1
            )));
        }
        // A free text ends at a line break. Text after the break in the same token would violate
        // the format.
        let is_allowed = |token| {
            let has_text_after_stop = || {
                let text = tokenizer.decode(&[token])?;
                let rest = text.split_once(STOP).map(|(_, rest)| rest);
                Ok::<_, Error>(rest.is_some_and(|rest| !rest.is_empty()))
            };
            let is_known = tokenizer.token_text(token).is_some();
            Ok(is_known && !tokenizer.is_special(token) && !has_text_after_stop()?)
        };
        let allowed = (0..vocab_size as u32).map(is_allowed);
        let allowed = allowed.collect::<Result<_, Error>>()?;
        let stop_tokens = tokenizer.encode_quoted(STOP)?;
        Ok(Self { tokenizer, settings, stop_tokens, knowledge: None, allowed })
    }

    /// Returns the most probable allowed token, the lowest id on a tie.
    pub(super) fn choose(&self, logits: &[f32]) -> u32 {
        let mut best: Option<(u32, f32)> = None;
        for (token, (logit, is_allowed)) in (0u32..).zip(logits.iter().zip(&self.allowed)) {
            if *is_allowed && best.is_none_or(|(_, best_logit)| *logit > best_logit) {
                best = Some((token, *logit));
            }
        }
        best.map_or(0, |(token, _)| token)
    }

    /// Returns the tokens that samples of a text continue with: the most probable allowed token for
    /// one sample.
    pub(super) fn sample(&self, logits: &[f32], samples: usize) -> Vec<SampledToken> {
        if samples < 2 {
            return vec![SampledToken { token: self.choose(logits), samples, weight: 1.0 }];
        }
        let tokens = (0u32..).zip(logits.iter().copied());
        let allowed = tokens.zip(&self.allowed).filter(|(_, is_allowed)| **is_allowed);
        distribute_samples(allowed.map(|(token, _)| token), samples)
    }

    /// Returns the maximum number of tokens of one free text.
    pub(super) fn token_budget(&self) -> usize {
        if self.settings.scores_only { 0 } else { self.settings.analysis_tokens }
    }
}
