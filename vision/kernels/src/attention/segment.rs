//! The keys and values of one head in one block.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use super::key_value_block::KeyValueBlock;
use super::panels::{LANES, Panels};

/// The tokens of one block, for one key head.
pub(super) struct Segment<'a> {
    /// Panels of tokens, with a row for each value of the head.
    pub(super) keys: Panels<'a>,
    /// Panels of values of the head, with a row for each token.
    pub(super) values: Panels<'a>,
    /// Position of the first token in the sequence.
    start: usize,
    len: usize,
    /// Number of the first panel of its scores, among the scores of a query.
    pub(super) first_panel: usize,
    /// Numbers of the queries of the task that attend to it.
    pub(super) queries: Range<usize>,
}

impl<'a> Segment<'a> {
    /// Creates the segment of a block, which follows another one in the sequence.
    pub(super) fn new(
        block: &'a KeyValueBlock,
        key_head: usize,
        before: Option<&Segment>,
        queries: Range<usize>,
    ) -> Self {
        Self {
            keys: block.keys_of(key_head),
            values: block.values_of(key_head),
            start: before.map_or(0, |segment| segment.start + segment.len),
            len: block.len(),
            first_panel: before.map_or(0, Segment::end_panel),
            queries,
        }
    }

    /// Returns the number of the panel that follows its scores.
    pub(super) fn end_panel(&self) -> usize {
        self.first_panel + self.len.div_ceil(LANES)
    }

    /// Returns the tokens of this segment with these positions, counted from its first token.
    #[inline(always)]
    pub(super) fn visible(&self, positions: &Range<usize>) -> Range<usize> {
        let end = positions.end.saturating_sub(self.start).min(self.len);
        positions.start.saturating_sub(self.start).min(end)..end
    }
}
