//! Consecutive tokens that attend to each other.

use std::ops::Range;

/// Consecutive tokens of one branch. Each attends to all tokens of the prefix, to itself, and to the
/// tokens of the span before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CausalSpan {
    /// Rows of the prefix; empty if the span is itself a prefix or a whole sequence.
    pub prefix: Range<usize>,
    /// Rows of the tokens.
    pub tokens: Range<usize>,
}

impl CausalSpan {
    /// Returns true if prefix and tokens are rows of a tensor with this number of tokens.
    pub(super) fn is_within(&self, tokens: usize) -> bool {
        [&self.prefix, &self.tokens]
            .into_iter()
            .all(|range| range.start <= range.end && range.end <= tokens)
    }
}
