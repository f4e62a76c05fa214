//! The keys and values of one head in one block.

#![expect(
    clippy::inline_always,
    reason = "the loops need to be part of the function that enables vector instructions"
)]

use std::ops::Range;

use super::key_value_block::KeyValueBlock;
use super::panel_product::LANES;
use super::panels::Panels;

/// The tokens of one block of a sequence, for one key head.
#[derive(Clone, Copy)]
pub(super) struct Segment<'a> {
    /// Panels of tokens, with a row per value of the head.
    pub(super) keys: Panels<'a>,
    /// Panels of values of the head, with a row per token.
    pub(super) values: Panels<'a>,
    /// Position of the first token in the sequence.
    start: usize,
    len: usize,
    /// Position of the first score in a row of scores. Rows have room for whole tiles.
    pub(super) offset: usize,
}

impl<'a> Segment<'a> {
    /// Returns the segments of consecutive blocks. The first block follows `before`, if there is one.
    pub(super) fn of_blocks(
        blocks: &[&'a KeyValueBlock],
        key_head: usize,
        before: Option<&Segment>,
    ) -> Vec<Self> {
        let mut start = before.map_or(0, |segment| segment.start + segment.len);
        let mut offset = before.map_or(0, Segment::end_offset);
        let segment = |block: &&'a KeyValueBlock| {
            let segment = Self {
                keys: block.keys_of(key_head),
                values: block.values_of(key_head),
                start,
                len: block.len(),
                offset,
            };
            (start, offset) = (start + segment.len, segment.end_offset());
            segment
        };
        blocks.iter().map(segment).collect()
    }

    /// Returns the position in a row of scores that follows the tiles of this segment.
    pub(super) fn end_offset(&self) -> usize {
        self.offset + self.len.next_multiple_of(LANES)
    }

    /// Returns the part of a range of positions that is in this segment, from its first token.
    #[inline(always)]
    pub(super) fn visible(&self, positions: &Range<usize>) -> Range<usize> {
        let end = positions.end.saturating_sub(self.start).min(self.len);
        positions.start.saturating_sub(self.start).min(end)..end
    }
}
