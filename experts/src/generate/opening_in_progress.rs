//! The opening of a text in progress, and its probability.

use std::sync::Arc;

use super::opening::{Opening, WrittenOpening};
use super::sampler::TextSampler;

/// The opening of a text in progress.
#[derive(Clone)]
pub(super) struct OpeningInProgress {
    opening: Opening,
    /// Logarithm of the probability of the tokens so far.
    log_probability: f64,
    /// All its tokens, once it has ended.
    tokens: Option<Arc<[u32]>>,
}

impl OpeningInProgress {
    /// Starts an opening.
    pub(super) fn new(opening: Opening) -> Self {
        Self { opening, log_probability: 0.0, tokens: None }
    }

    /// Returns true if the opening has ended.
    pub(super) fn is_complete(&self) -> bool {
        self.tokens.is_some()
    }

    /// Returns the token at a position of the text: the given one, or else the most probable one. Adds its
    /// log-probability to that of the opening.
    pub(super) fn choose(&mut self, position: usize, logits: &[f32], sampler: &TextSampler) -> u32 {
        let given = self.opening.tokens.as_ref().and_then(|tokens| tokens.get(position));
        let token = given.copied().unwrap_or_else(|| sampler.choose(logits));
        self.log_probability += log_probability(logits, token);
        token
    }

    /// Ends the opening if the text so far contains the text at which it ends.
    pub(super) fn complete(&mut self, tokens: &[u32], text: &str) {
        if self.tokens.is_none() && text.contains(&*self.opening.end) {
            self.tokens = Some(tokens.into());
        }
    }

    /// Returns the opening; `None` if it never ended.
    pub(super) fn into_written(self) -> Option<WrittenOpening> {
        let log_probability = self.log_probability;
        self.tokens.map(|tokens| WrittenOpening { tokens, log_probability })
    }
}

/// Returns the logarithm of the probability of a token.
fn log_probability(logits: &[f32], token: u32) -> f64 {
    let largest = f64::from(logits.iter().copied().fold(f32::MIN, f32::max));
    let sum: f64 = logits.iter().map(|logit| (f64::from(*logit) - largest).exp()).sum();
    let logit = logits.get(token as usize).map_or(f64::NEG_INFINITY, |logit| f64::from(*logit));
    logit - largest - sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_sum_to_one() {
        let logits = [1.0, -2.0, 30.0, 29.5];
        let sum: f64 = (0..4).map(|token| log_probability(&logits, token).exp()).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
        assert!(log_probability(&logits, 4).is_infinite());
    }
}
