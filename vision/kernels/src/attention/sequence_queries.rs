//! The queries of one sequence.

use std::ops::Range;

use super::key_value_block::KeyValueBlock;

/// The queries of the new tokens of one sequence.
pub(super) struct SequenceQueries<'a> {
    /// Queries of all heads, (n, h, d).
    pub(super) queries: &'a [f32],
    /// Number of new tokens (n).
    pub(super) new_tokens: usize,
    /// Number of all tokens.
    pub(super) tokens: usize,
    /// All tokens.
    pub(super) blocks: &'a [&'a KeyValueBlock],
    /// Ranges of positions that attend to all tokens of their range.
    pub(super) bidirectional: &'a [Range<usize>],
}

impl SequenceQueries<'_> {
    /// Returns the positions that a new token attends to.
    pub(super) fn visible_to(&self, new_token: usize, window: Option<usize>) -> Range<usize> {
        let position = self.tokens - self.new_tokens + new_token;
        let start = window.map_or(0, |window| (position + 1).saturating_sub(window));
        let range = self.bidirectional.iter().find(|range| range.contains(&position));
        start..range.map_or(position + 1, |range| range.end)
    }
}
