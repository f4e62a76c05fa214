//! Scores and outputs of a block of queries.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use super::panels::LANES;

/// Scores and outputs of a block of queries.
pub(super) struct QueryBuffers {
    /// Scores, then weights: panels of one row for each query.
    scores: Vec<[f32; LANES]>,
    /// Panels of scores of a query.
    score_panels: usize,
    /// Sums of weighted values: panels of one row for each query.
    sums: Vec<[f32; LANES]>,
    /// Panels of values of a query.
    pub(super) value_panels: usize,
}

impl QueryBuffers {
    /// Creates buffers for this many queries, each with this many panels of scores.
    pub(super) fn new(queries: usize, score_panels: usize, head_size: usize) -> Self {
        let value_panels = head_size.div_ceil(LANES);
        Self {
            scores: vec![[0.; LANES]; queries * score_panels],
            score_panels,
            sums: vec![[0.; LANES]; queries * value_panels],
            value_panels,
        }
    }

    /// Appends the outputs of queries: the means of the values. `totals` has the sum of the weights of
    /// each query.
    #[inline(always)]
    pub(super) fn write_means(&self, totals: &[f32], head_size: usize, outputs: &mut Vec<f32>) {
        for (sums, total) in self.sums.chunks_exact(self.value_panels).zip(totals) {
            let inverse = 1. / total;
            outputs.extend(sums.as_flattened()[..head_size].iter().map(|sum| sum * inverse));
        }
    }

    /// Returns the scores of a query from a panel on.
    #[inline(always)]
    pub(super) fn scores_of(&mut self, query: usize, first_panel: usize) -> &mut [[f32; LANES]] {
        let panels = query * self.score_panels + first_panel..(query + 1) * self.score_panels;
        &mut self.scores[panels]
    }

    /// Returns the weights of a query from a panel on.
    #[inline(always)]
    pub(super) fn weights_of(&self, query: usize, first_panel: usize) -> &[f32] {
        let panels = query * self.score_panels + first_panel..(query + 1) * self.score_panels;
        self.scores[panels].as_flattened()
    }

    /// Returns the sums of a query from a panel of values on.
    #[inline(always)]
    pub(super) fn sums_of(&mut self, query: usize, first_panel: usize) -> &mut [[f32; LANES]] {
        let panels = query * self.value_panels + first_panel..(query + 1) * self.value_panels;
        &mut self.sums[panels]
    }

    /// Sets all sums to zero.
    #[inline(always)]
    pub(super) fn clear_sums(&mut self) {
        self.sums.fill([0.; LANES]);
    }
}
