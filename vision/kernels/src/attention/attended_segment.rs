//! A part of a sequence, and the query rows that attend to it.

#![expect(
    clippy::inline_always,
    reason = "the loops need to be part of the function that enables vector instructions"
)]

use std::ops::Range;

use super::panel_lanes::PanelLanes;
use super::panel_product::{LANES, PanelProduct, add_products, multiply_rows};
use super::row_block::QueryRow;
use super::row_buffers::RowBuffers;
use super::segment::Segment;

/// Tokens that are multiplied with all rows of a block before the next ones are read.
const BLOCK_TOKENS: usize = 64;

/// A segment, and the rows that attend to it.
pub(super) struct AttendedSegment<'a> {
    pub(super) segment: Segment<'a>,
    /// Rows of a block of rows.
    pub(super) rows: Range<usize>,
    /// Tokens of the segment that any of the rows attends to.
    visible: Range<usize>,
    /// The tiles with these tokens, as a range of tokens.
    pub(super) tiles: Range<usize>,
}

impl<'a> AttendedSegment<'a> {
    /// Selects the tokens of a segment that these rows attend to.
    pub(super) fn new(segment: Segment<'a>, rows: Range<usize>, positions: &Range<usize>) -> Self {
        let visible = segment.visible(positions);
        let tiles = visible.start / LANES * LANES..visible.end.next_multiple_of(LANES);
        Self { segment, rows, visible, tiles }
    }

    /// Computes the scores of the visible tokens.
    #[inline(always)]
    pub(super) fn multiply_keys<L: PanelLanes>(
        &self,
        lanes: L,
        queries: &[QueryRow],
        buffers: &mut RowBuffers,
    ) {
        for start in self.tiles.clone().step_by(BLOCK_TOKENS) {
            let end = self.tiles.end.min(start + BLOCK_TOKENS);
            let tiles = start / LANES..end / LANES;
            let mut product = KeyProduct { segment: &self.segment, queries, tiles, buffers };
            multiply_rows(lanes, &self.rows, &mut product);
        }
    }

    /// Adds the weighted values of the visible tokens to the sums of the rows.
    #[inline(always)]
    pub(super) fn add_values<L: PanelLanes>(&self, lanes: L, buffers: &mut RowBuffers) {
        for start in self.visible.clone().step_by(BLOCK_TOKENS) {
            let tokens = start..self.visible.end.min(start + BLOCK_TOKENS);
            let mut product = ValueProduct { segment: &self.segment, tokens, buffers };
            multiply_rows(lanes, &self.rows, &mut product);
        }
    }
}

/// The scores of a few tiles of tokens. A panel is a tile.
struct KeyProduct<'a> {
    segment: &'a Segment<'a>,
    queries: &'a [QueryRow<'a>],
    tiles: Range<usize>,
    buffers: &'a mut RowBuffers,
}

impl PanelProduct for KeyProduct<'_> {
    #[inline(always)]
    fn panels(&self) -> Range<usize> {
        self.tiles.clone()
    }

    #[inline(always)]
    fn multiply<L: PanelLanes, const R: usize, const P: usize>(
        &mut self,
        lanes: L,
        row: usize,
        panel: usize,
    ) {
        let mut queries: [&[f32]; R] = [&[]; R];
        for (query, row) in queries.iter_mut().zip(&self.queries[row..]) {
            *query = row.query;
        }
        let mut sums = [[lanes.zeros(); P]; R];
        add_products(lanes, queries, self.segment.keys.select::<P>(panel), &mut sums);
        let first = self.segment.offset / LANES + panel;
        for (r, sums) in sums.iter().enumerate() {
            let scores = &mut self.buffers.scores_of(row + r)[first..];
            for (sums, scores) in sums.iter().zip(scores) {
                lanes.store(*sums, scores);
            }
        }
    }
}

/// The weighted sums of the values of a few tokens. A panel has 16 values of a head.
struct ValueProduct<'a> {
    segment: &'a Segment<'a>,
    tokens: Range<usize>,
    buffers: &'a mut RowBuffers,
}

impl PanelProduct for ValueProduct<'_> {
    #[inline(always)]
    fn panels(&self) -> Range<usize> {
        0..self.buffers.value_panels
    }

    #[inline(always)]
    fn multiply<L: PanelLanes, const R: usize, const P: usize>(
        &mut self,
        lanes: L,
        row: usize,
        panel: usize,
    ) {
        let mut sums = [[lanes.zeros(); P]; R];
        for (r, sums) in sums.iter_mut().enumerate() {
            for (sums, stored) in sums.iter_mut().zip(&self.buffers.sums_of(row + r)[panel..]) {
                *sums = lanes.load(stored);
            }
        }
        let mut weights: [&[f32]; R] = [&[]; R];
        for (r, weights) in weights.iter_mut().enumerate() {
            let of_segment = self.buffers.weights_of(row + r, self.segment.offset);
            *weights = &of_segment[self.tokens.clone()];
        }
        let mut values = self.segment.values.select::<P>(panel);
        for values in &mut values {
            *values = &values[self.tokens.clone()];
        }
        add_products(lanes, weights, values, &mut sums);
        for (r, sums) in sums.iter().enumerate() {
            for (sums, stored) in sums.iter().zip(&mut self.buffers.sums_of(row + r)[panel..]) {
                lanes.store(*sums, stored);
            }
        }
    }
}
