//! Greedy choice of the next token of a free text.

use super::task::Settings;
use crate::prompt::STOP;
use crate::{Error, TextTokenizer};

/// Chooses the tokens of free texts and knows when a text ends.
pub(super) struct GreedySampler {
    pub(super) tokenizer: TextTokenizer,
    pub(super) settings: Settings,
    /// The tokens of the stop text.
    pub(super) stop: Vec<u32>,
    /// Whether each token of the vocabulary may occur in a free text.
    writable: Vec<bool>,
}

impl GreedySampler {
    /// A sampler for a model whose output layer has `vocab_size` tokens.
    pub(super) fn new(
        tokenizer: TextTokenizer,
        vocab_size: usize,
        settings: Settings,
    ) -> Result<Self, Error> {
        let known = tokenizer.vocabulary();
        if known > vocab_size {
            return Err(Error::Tokenizer(format!(
                "it has {known} tokens, the model's vocabulary only {vocab_size}"
            )));
        }
        // A free text ends at its line break. A token with text after the break would break the format.
        let writable = |t| {
            let continues = || {
                let text = tokenizer.decode(&[t])?;
                let rest = text.split_once(STOP).map(|(_, rest)| rest);
                Ok::<_, Error>(rest.is_some_and(|rest| !rest.is_empty()))
            };
            Ok((t as usize) < known && !tokenizer.is_special(t) && !continues()?)
        };
        let writable = (0..vocab_size as u32).map(writable);
        let writable = writable.collect::<Result<_, Error>>()?;
        let stop = tokenizer.free(STOP)?;
        Ok(Self {
            tokenizer,
            settings,
            stop,
            writable,
        })
    }

    /// The most probable token that may occur in a free text; the first one on a tie.
    pub(super) fn choose(&self, logits: &[f32]) -> u32 {
        let mut best: Option<(u32, f32)> = None;
        for (token, (logit, writable)) in (0u32..).zip(logits.iter().zip(&self.writable)) {
            if *writable && best.is_none_or(|(_, most)| *logit > most) {
                best = Some((token, *logit));
            }
        }
        best.map_or(0, |(token, _)| token)
    }

    /// Maximum number of tokens of one free text.
    pub(super) fn budget(&self) -> usize {
        if self.settings.scores_only {
            0
        } else {
            self.settings.analysis_tokens
        }
    }
}
