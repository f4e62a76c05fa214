//! Scores and outputs of a few query rows.

#![expect(
    clippy::inline_always,
    reason = "the loops need to be part of the function that enables vector instructions"
)]

use super::panel_product::LANES;
use super::row_block::BLOCK_ROWS;

/// Scores and outputs of the rows of a block.
pub(super) struct RowBuffers {
    /// Scores, then weights: a row of `tiles` per query row.
    scores: Vec<[f32; LANES]>,
    tiles: usize,
    /// Sums of weighted values: a row of `value_panels` per query row.
    pub(super) sums: Vec<[f32; LANES]>,
    pub(super) value_panels: usize,
    /// Sums of the weights.
    pub(super) totals: [f32; BLOCK_ROWS],
}

impl RowBuffers {
    /// Creates buffers for rows of this many tiles of scores, and for values of this size.
    pub(super) fn new(tiles: usize, head_size: usize) -> Self {
        let value_panels = head_size.div_ceil(LANES);
        Self {
            scores: vec![[0.; LANES]; BLOCK_ROWS * tiles],
            tiles,
            sums: vec![[0.; LANES]; BLOCK_ROWS * value_panels],
            value_panels,
            totals: [0.; BLOCK_ROWS],
        }
    }

    /// Appends the outputs of the first rows: their weighted means of the values.
    #[inline(always)]
    pub(super) fn write_means(&self, rows: usize, head_size: usize, outputs: &mut Vec<f32>) {
        let sums = self.sums.chunks_exact(self.value_panels);
        for (sums, total) in sums.zip(self.totals).take(rows) {
            let inverse = 1. / total;
            outputs.extend(sums.as_flattened()[..head_size].iter().map(|sum| sum * inverse));
        }
    }

    /// Returns the scores of a row.
    #[inline(always)]
    pub(super) fn scores_of(&mut self, row: usize) -> &mut [[f32; LANES]] {
        &mut self.scores[row * self.tiles..(row + 1) * self.tiles]
    }

    /// Returns the weights of a row for the tokens of a segment that begins at this score.
    #[inline(always)]
    pub(super) fn weights_of(&self, row: usize, offset: usize) -> &[f32] {
        let scores = &self.scores[row * self.tiles..(row + 1) * self.tiles];
        &scores.as_flattened()[offset..]
    }

    /// Returns the sums of a row.
    #[inline(always)]
    pub(super) fn sums_of(&mut self, row: usize) -> &mut [[f32; LANES]] {
        &mut self.sums[row * self.value_panels..(row + 1) * self.value_panels]
    }
}
