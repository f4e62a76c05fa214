//! Attention of the queries of one sequence over one key head.

#![expect(
    clippy::inline_always,
    reason = "the loops need to be part of the function that enables vector instructions"
)]

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::key_value_block::KeyValueBlock;
use super::lane_product::{LANES, add_products};
use super::settings::AttentionSettings;
use crate::exp::exp;

/// Query rows whose scores are kept at a time.
const BLOCK_ROWS: usize = 16;
/// Query rows that are multiplied together.
const GROUP_ROWS: usize = 4;
/// Tokens that are multiplied with all rows of a block before the next ones are read.
const BLOCK_TOKENS: usize = 64;

/// The queries of a sequence that share a key head, one row per token and query head.
pub(super) struct HeadAttention<'a> {
    /// Queries of all heads, (n, h, d).
    pub(super) queries: &'a [f32],
    /// Number of query heads (h).
    pub(super) query_heads: usize,
    /// Number of query heads per key head.
    pub(super) group: usize,
    pub(super) key_head: usize,
    pub(super) head_size: usize,
    /// All tokens of the sequence.
    pub(super) blocks: &'a [&'a KeyValueBlock],
    /// Ranges of tokens that attend to all tokens of their range.
    pub(super) bidirectional: &'a [Range<usize>],
    pub(super) settings: AttentionSettings,
}

/// The tokens of one block.
#[derive(Clone, Copy)]
struct Segment<'a> {
    keys: &'a [f32],
    values: &'a [f32],
    /// Position of the first token in the sequence.
    start: usize,
    len: usize,
    /// Position of the first score in a row of scores. Rows have room for whole tiles.
    offset: usize,
}

impl<'a> HeadAttention<'a> {
    /// Returns the number of multiplications with keys, for an estimate of the work.
    pub(super) fn products(&self) -> usize {
        self.rows() * self.tokens() * self.head_size
    }

    /// Computes the outputs, one row per query.
    pub(super) fn compute(&self) -> Vec<f32> {
        Arch::new().dispatch(AttentionKernel(self))
    }

    fn tokens(&self) -> usize {
        self.blocks.iter().map(|block| block.len()).sum()
    }

    fn new_tokens(&self) -> usize {
        self.queries.len() / (self.query_heads * self.head_size).max(1)
    }

    fn rows(&self) -> usize {
        self.new_tokens() * self.group
    }

    /// Returns the query of a row.
    #[inline(always)]
    fn query(&self, row: usize) -> &'a [f32] {
        let (token, head) = (row / self.group, self.key_head * self.group + row % self.group);
        &self.queries[(token * self.query_heads + head) * self.head_size..][..self.head_size]
    }

    fn segments(&self) -> Vec<Segment<'a>> {
        let (mut start, mut offset) = (0, 0);
        let segment = |block: &&'a KeyValueBlock| {
            let segment = Segment {
                keys: block.keys_of(self.key_head),
                values: block.values_of(self.key_head),
                start,
                len: block.len(),
                offset,
            };
            start += segment.len;
            offset += segment.len.next_multiple_of(LANES);
            segment
        };
        self.blocks.iter().map(segment).collect()
    }
}

/// The computation, as a type that the vector instructions of the processor are enabled for.
struct AttentionKernel<'a>(&'a HeadAttention<'a>);

impl WithSimd for AttentionKernel<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Vec<f32> {
        let task = self.0;
        let segments = task.segments();
        let width = segments.last().map_or(0, |s| s.offset + s.len.next_multiple_of(LANES));
        let stride = task.head_size.next_multiple_of(LANES);
        let rows = task.rows();
        let mut block = RowBlock {
            task,
            segments: &segments,
            first: 0,
            rows: 0,
            visible: 0..0,
            scores: vec![0.; BLOCK_ROWS * width],
            sums: vec![0.; BLOCK_ROWS * stride],
            width,
            stride,
        };
        let mut outputs = Vec::with_capacity(rows * task.head_size);
        for first in (0..rows).step_by(BLOCK_ROWS) {
            block.select(first, BLOCK_ROWS.min(rows - first));
            block.multiply_keys();
            let totals = block.compute_weights();
            block.multiply_values();
            for (sums, total) in block.sums.chunks_exact(stride).zip(totals).take(block.rows) {
                let inverse = 1. / total;
                outputs.extend(sums[..task.head_size].iter().map(|sum| sum * inverse));
            }
        }
        outputs
    }
}

/// A few query rows with their scores and outputs.
struct RowBlock<'a> {
    task: &'a HeadAttention<'a>,
    segments: &'a [Segment<'a>],
    /// First row.
    first: usize,
    rows: usize,
    /// Tokens that any of the rows attends to.
    visible: Range<usize>,
    /// Scores, then weights: a row of `width` per query row.
    scores: Vec<f32>,
    /// Sums of weighted values: a row of `stride` per query row.
    sums: Vec<f32>,
    width: usize,
    stride: usize,
}

impl RowBlock<'_> {
    #[inline(always)]
    fn select(&mut self, first: usize, rows: usize) {
        (self.first, self.rows) = (first, rows);
        self.visible = self.visible_to(first).start..self.visible_to(first + rows - 1).end;
    }

    /// Returns the tokens that a row attends to. Neither bound decreases from row to row.
    #[inline(always)]
    fn visible_to(&self, row: usize) -> Range<usize> {
        let earlier = self.task.tokens() - self.task.new_tokens();
        let position = earlier + row / self.task.group;
        let window = self.task.settings.window;
        let start = window.map_or(0, |window| (position + 1).saturating_sub(window));
        let mut ranges = self.task.bidirectional.iter();
        let range = ranges.find(|range| range.contains(&position));
        start..range.map_or(position + 1, |range| range.end)
    }

    /// Computes the scores of all visible tokens.
    #[inline(always)]
    fn multiply_keys(&mut self) {
        let tile_size = LANES * self.task.head_size;
        for segment in self.segments {
            let visible = segment.tiles(&self.visible);
            let tiles = visible.start / LANES..visible.end / LANES;
            for start in tiles.clone().step_by(BLOCK_TOKENS / LANES) {
                let end = tiles.end.min(start + BLOCK_TOKENS / LANES);
                let mut row = 0;
                while row < self.rows {
                    let count = if row + GROUP_ROWS <= self.rows { GROUP_ROWS } else { 1 };
                    for tile in start..end {
                        let keys = &segment.keys[tile * tile_size..(tile + 1) * tile_size];
                        let position = segment.offset + tile * LANES;
                        if count == GROUP_ROWS {
                            self.multiply_tile::<GROUP_ROWS>(keys, row, position);
                        } else {
                            self.multiply_tile::<1>(keys, row, position);
                        }
                    }
                    row += count;
                }
            }
        }
    }

    /// Computes the scores of `R` rows and the tokens of a tile.
    #[inline(always)]
    fn multiply_tile<const R: usize>(&mut self, keys: &[f32], row: usize, position: usize) {
        let queries: [&[f32]; R] = std::array::from_fn(|r| self.task.query(self.first + row + r));
        let mut sums = [[0.; LANES]; R];
        add_products(queries, keys, LANES, &mut sums);
        for (r, sums) in sums.iter().enumerate() {
            self.scores[(row + r) * self.width + position..][..LANES].copy_from_slice(sums);
        }
    }

    /// Turns the scores into weights. Returns the sum of the weights of each row.
    #[inline(always)]
    fn compute_weights(&mut self) -> [f32; BLOCK_ROWS] {
        let mut totals = [0.; BLOCK_ROWS];
        for (row, total) in totals.iter_mut().enumerate().take(self.rows) {
            let visible = self.visible_to(self.first + row);
            let scores = &mut self.scores[row * self.width..(row + 1) * self.width];
            let mut largest = [f32::NEG_INFINITY; LANES];
            for segment in self.segments {
                let tiles = segment.tiles(&self.visible);
                let visible = segment.visible(&visible);
                let scores = &mut scores[segment.offset..];
                scores[tiles.start..visible.start.max(tiles.start)].fill(f32::NEG_INFINITY);
                scores[visible.end.max(tiles.start)..tiles.end].fill(f32::NEG_INFINITY);
                add_largest(&scores[tiles], &mut largest);
            }
            let largest = largest.into_iter().fold(f32::NEG_INFINITY, f32::max);
            let mut sums = [0.; LANES];
            for segment in self.segments {
                let scores = &mut scores[segment.offset..][segment.tiles(&self.visible)];
                to_weights(scores, largest, self.task.settings.scale, &mut sums);
            }
            *total = sums.iter().sum();
        }
        totals
    }

    /// Computes the sums of the values of all visible tokens.
    #[inline(always)]
    fn multiply_values(&mut self) {
        self.sums.fill(0.);
        for segment in self.segments {
            let visible = segment.visible(&self.visible);
            for start in visible.clone().step_by(BLOCK_TOKENS) {
                let end = visible.end.min(start + BLOCK_TOKENS);
                let values = &segment.values[start * self.stride..end * self.stride];
                let tokens = segment.offset + start..segment.offset + end;
                let mut row = 0;
                while row < self.rows {
                    if row + GROUP_ROWS <= self.rows {
                        self.add_values::<GROUP_ROWS>(values, row, &tokens);
                        row += GROUP_ROWS;
                    } else {
                        self.add_values::<1>(values, row, &tokens);
                        row += 1;
                    }
                }
            }
        }
    }

    /// Adds the weighted values of a few tokens to the sums of `R` rows.
    #[inline(always)]
    fn add_values<const R: usize>(&mut self, values: &[f32], row: usize, tokens: &Range<usize>) {
        let weights: [&[f32]; R] = std::array::from_fn(|r| {
            &self.scores[(row + r) * self.width..][tokens.start..tokens.end]
        });
        for column in (0..self.stride).step_by(LANES) {
            let mut sums = [[0.; LANES]; R];
            for (r, sums) in sums.iter_mut().enumerate() {
                let stored = &self.sums[(row + r) * self.stride + column..][..LANES];
                sums.copy_from_slice(stored);
            }
            add_products(weights, &values[column..], self.stride, &mut sums);
            for (r, sums) in sums.iter().enumerate() {
                self.sums[(row + r) * self.stride + column..][..LANES].copy_from_slice(sums);
            }
        }
    }
}

impl Segment<'_> {
    /// Returns the part of a range of tokens that is in this segment, from its first token.
    #[inline(always)]
    fn visible(&self, tokens: &Range<usize>) -> Range<usize> {
        let end = tokens.end.saturating_sub(self.start).min(self.len);
        tokens.start.saturating_sub(self.start).min(end)..end
    }

    /// Returns the tiles with these tokens, as a range of tokens.
    #[inline(always)]
    fn tiles(&self, tokens: &Range<usize>) -> Range<usize> {
        let visible = self.visible(tokens);
        visible.start / LANES * LANES..visible.end.next_multiple_of(LANES)
    }
}

/// Updates the largest score of each lane.
#[inline(always)]
fn add_largest(scores: &[f32], largest: &mut [f32; LANES]) {
    for scores in scores.chunks_exact(LANES) {
        for lane in 0..LANES {
            // A comparison, unlike `f32::max`, is one instruction.
            if scores[lane] > largest[lane] {
                largest[lane] = scores[lane];
            }
        }
    }
}

/// Replaces scores by `e^((score − largest) · scale)` and adds them to the sum of each lane.
#[inline(always)]
fn to_weights(scores: &mut [f32], largest: f32, scale: f32, sums: &mut [f32; LANES]) {
    for scores in scores.chunks_exact_mut(LANES) {
        for lane in 0..LANES {
            scores[lane] = exp((scores[lane] - largest) * scale);
            sums[lane] += scores[lane];
        }
    }
}
