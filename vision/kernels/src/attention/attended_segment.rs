//! A segment, and the queries of a block that attend to it.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use super::panel_lanes::PanelLanes;
use super::panels::LANES;
use super::query::Query;
use super::query_buffers::QueryBuffers;
use super::query_product::{QueryProduct, add_products, load_rows, multiply_queries, store_rows};
use super::segment::Segment;

/// Tokens that are multiplied with all queries of a block before the next ones are read.
const BLOCK_TOKENS: usize = 64;

/// A segment, and the queries of a block that attend to it.
pub(super) struct AttendedSegment<'a> {
    pub(super) segment: &'a Segment<'a>,
    /// Queries of the block.
    pub(super) queries: Range<usize>,
    /// The smallest range of tokens that contains those that the queries attend to.
    visible: Range<usize>,
}

impl<'a> AttendedSegment<'a> {
    /// Selects the queries of a block that attend to a segment; `None` if none of them does. The block
    /// begins with the query `first` of the task.
    pub(super) fn new(segment: &'a Segment<'a>, first: usize, queries: &[Query]) -> Option<Self> {
        let start = segment.queries.start.saturating_sub(first).min(queries.len());
        let end = segment.queries.end.saturating_sub(first).min(queries.len());
        let visible = queries[start..end].iter().map(|query| query.visible.clone());
        let visible = visible.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))?;
        Some(Self { segment, queries: start..end, visible: segment.visible(&visible) })
    }

    /// Returns the panels of the tokens that the queries attend to.
    #[inline(always)]
    pub(super) fn panels(&self) -> Range<usize> {
        self.visible.start / LANES..self.visible.end.div_ceil(LANES)
    }

    /// Computes the scores of the visible tokens.
    #[inline(always)]
    pub(super) fn multiply_keys<L: PanelLanes>(
        &self,
        lanes: L,
        queries: &[Query],
        buffers: &mut QueryBuffers,
    ) {
        for start in self.panels().step_by(BLOCK_TOKENS / LANES) {
            let panels = start..self.panels().end.min(start + BLOCK_TOKENS / LANES);
            let mut product = KeyProduct { segment: self.segment, queries, panels, buffers };
            multiply_queries(lanes, &self.queries, &mut product);
        }
    }

    /// Adds the weighted values of the visible tokens to the sums of the queries.
    #[inline(always)]
    pub(super) fn add_values<L: PanelLanes>(&self, lanes: L, buffers: &mut QueryBuffers) {
        for start in self.visible.clone().step_by(BLOCK_TOKENS) {
            let tokens = start..self.visible.end.min(start + BLOCK_TOKENS);
            let mut product = ValueProduct { segment: self.segment, tokens, buffers };
            multiply_queries(lanes, &self.queries, &mut product);
        }
    }
}

/// The scores of a few panels of tokens.
struct KeyProduct<'a> {
    segment: &'a Segment<'a>,
    queries: &'a [Query<'a>],
    panels: Range<usize>,
    buffers: &'a mut QueryBuffers,
}

impl QueryProduct for KeyProduct<'_> {
    #[inline(always)]
    fn panels(&self) -> Range<usize> {
        self.panels.clone()
    }

    #[inline(always)]
    fn multiply<L: PanelLanes, const Q: usize, const P: usize>(
        &mut self,
        lanes: L,
        query: usize,
        panel: usize,
    ) {
        let mut values: [&[f32]; Q] = [&[]; Q];
        for (values, query) in values.iter_mut().zip(&self.queries[query..]) {
            *values = query.values;
        }
        let mut sums = [[lanes.zeros(); P]; Q];
        add_products(lanes, values, self.segment.keys.select::<P>(panel), &mut sums);
        for (q, sums) in sums.into_iter().enumerate() {
            let scores = self.buffers.scores_of(query + q, self.segment.first_panel + panel);
            store_rows(lanes, sums, scores);
        }
    }
}

/// The weighted sums of the values of a few tokens.
struct ValueProduct<'a> {
    segment: &'a Segment<'a>,
    tokens: Range<usize>,
    buffers: &'a mut QueryBuffers,
}

impl QueryProduct for ValueProduct<'_> {
    #[inline(always)]
    fn panels(&self) -> Range<usize> {
        0..self.buffers.value_panels
    }

    #[inline(always)]
    fn multiply<L: PanelLanes, const Q: usize, const P: usize>(
        &mut self,
        lanes: L,
        query: usize,
        panel: usize,
    ) {
        let mut sums = [[lanes.zeros(); P]; Q];
        let mut weights: [&[f32]; Q] = [&[]; Q];
        for (q, sums) in sums.iter_mut().enumerate() {
            *sums = load_rows(lanes, self.buffers.sums_of(query + q, panel));
        }
        for (q, weights) in weights.iter_mut().enumerate() {
            let of_segment = self.buffers.weights_of(query + q, self.segment.first_panel);
            *weights = &of_segment[self.tokens.clone()];
        }
        let mut values = self.segment.values.select::<P>(panel);
        for values in &mut values {
            *values = &values[self.tokens.clone()];
        }
        add_products(lanes, weights, values, &mut sums);
        for (q, sums) in sums.into_iter().enumerate() {
            store_rows(lanes, sums, self.buffers.sums_of(query + q, panel));
        }
    }
}
