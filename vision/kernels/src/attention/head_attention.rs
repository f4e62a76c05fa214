//! Attention of the queries of one key head.

use std::ops::Range;

use pulp::{Scalar, Simd, WithSimd};

use super::key_value_block::KeyValueBlock;
use super::panel_lanes::PanelLanes;
use super::panel_product::LANES;
use super::row_block::{BLOCK_ROWS, QueryRow, RowBlock};
use super::row_buffers::RowBuffers;
use super::segment::Segment;
use super::settings::AttentionSettings;

/// The queries of one sequence.
pub(super) struct SequenceQueries<'a> {
    /// Queries of all heads, (n, h, d).
    pub(super) queries: &'a [f32],
    /// Number of new tokens (n).
    pub(super) new_tokens: usize,
    /// All tokens of the sequence.
    pub(super) blocks: &'a [&'a KeyValueBlock],
    /// Ranges of positions that attend to all tokens of their range.
    pub(super) bidirectional: &'a [Range<usize>],
}

/// Sizes of an attention.
#[derive(Clone, Copy)]
pub(super) struct HeadSizes {
    /// Number of query heads (h).
    pub(super) query_heads: usize,
    /// Number of query heads per key head.
    pub(super) group: usize,
    /// Number of values of a head (d).
    pub(super) head_size: usize,
}

/// The queries of sequences that share a key head, one row per token and query head.
pub(super) struct HeadAttention<'a> {
    pub(super) sequences: &'a [SequenceQueries<'a>],
    /// Number of first blocks that all sequences have in common.
    pub(super) shared_blocks: usize,
    pub(super) key_head: usize,
    pub(super) sizes: HeadSizes,
    pub(super) settings: AttentionSettings,
}

impl SequenceQueries<'_> {
    pub(super) fn tokens(&self) -> usize {
        self.blocks.iter().map(|block| block.len()).sum()
    }
}

impl<'a> HeadAttention<'a> {
    /// Returns the number of multiplications with keys, for an estimate of the work.
    pub(super) fn products(&self) -> usize {
        let products = |sequence: &SequenceQueries| self.rows(sequence) * sequence.tokens();
        self.sequences.iter().map(products).sum::<usize>() * self.sizes.head_size
    }

    /// Computes the outputs, one row per query, the sequences one after the other.
    pub(super) fn compute(&self) -> Vec<f32> {
        #[cfg(target_arch = "x86_64")]
        {
            use pulp::x86::{V3, V4};

            if let Some(lanes) = V4::try_new() {
                return self.compute_with(lanes);
            }
            if let Some(lanes) = V3::try_new() {
                return self.compute_with(lanes);
            }
        }
        self.compute_with(Scalar::new())
    }

    /// Computes the outputs with the instructions of a processor.
    pub(super) fn compute_with<L: PanelLanes>(&self, lanes: L) -> Vec<f32> {
        Simd::vectorize(lanes, AttentionKernel { task: self, lanes })
    }

    /// Returns the number of rows of a sequence.
    fn rows(&self, sequence: &SequenceQueries) -> usize {
        sequence.new_tokens * self.sizes.group
    }

    /// Returns the query of a row of a sequence and the positions that it attends to. Neither bound
    /// decreases from row to row.
    fn row(&self, sequence: &SequenceQueries<'a>, row: usize) -> QueryRow<'a> {
        let HeadSizes { query_heads, group, head_size } = self.sizes;
        let (token, head) = (row / group, self.key_head * group + row % group);
        let position = sequence.tokens() - sequence.new_tokens + token;
        let window = self.settings.window;
        let start = window.map_or(0, |window| (position + 1).saturating_sub(window));
        let mut ranges = sequence.bidirectional.iter();
        let range = ranges.find(|range| range.contains(&position));
        QueryRow {
            query: &sequence.queries[(token * query_heads + head) * head_size..][..head_size],
            visible: start..range.map_or(position + 1, |range| range.end),
        }
    }

    /// Returns the segments that all sequences share, and those of each sequence alone.
    fn segments(&self) -> (Vec<Segment<'a>>, Vec<Vec<Segment<'a>>>) {
        let shared = self.sequences.first().map_or(&[][..], |first| first.blocks);
        let shared = shared.get(..self.shared_blocks).unwrap_or_default();
        let shared = Segment::of_blocks(shared, self.key_head, None);
        let own = self.sequences.iter().map(|sequence| {
            let blocks = sequence.blocks.get(self.shared_blocks..).unwrap_or_default();
            Segment::of_blocks(blocks, self.key_head, shared.last())
        });
        let own = own.collect();
        (shared, own)
    }

    /// Returns the rows from `first` on that are computed together.
    fn row_block(
        &self,
        first: usize,
        shared: &[Segment<'a>],
        own: &[Vec<Segment<'a>>],
    ) -> RowBlock<'a> {
        let mut block = RowBlock::new(self.settings.scale);
        let mut of_sequences = Vec::new();
        let mut start = 0;
        for sequence in self.sequences {
            let end = start + self.rows(sequence);
            let rows = first.max(start)..(first + BLOCK_ROWS).min(end).max(first.max(start));
            let before = block.rows.len();
            block.rows.extend(rows.map(|row| self.row(sequence, row - start)));
            of_sequences.push(before..block.rows.len());
            start = end;
        }
        let all = 0..block.rows.len();
        block.add_segments(shared, &all);
        for (own, rows) in own.iter().zip(&of_sequences) {
            block.add_segments(own, rows);
        }
        block
    }
}

/// The computation, as a type that the vector instructions of the processor are enabled for.
struct AttentionKernel<'a, L> {
    task: &'a HeadAttention<'a>,
    lanes: L,
}

impl<L: PanelLanes> WithSimd for AttentionKernel<'_, L> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Vec<f32> {
        let Self { task, lanes } = self;
        let (shared, own) = task.segments();
        let last = own.iter().map(|own| own.last().or(shared.last()));
        let tiles = last.flatten().map(Segment::end_offset).max().unwrap_or(0) / LANES;
        let head_size = task.sizes.head_size;
        let mut buffers = RowBuffers::new(tiles, head_size);
        let rows = task.sequences.iter().map(|sequence| task.rows(sequence)).sum();
        let mut outputs = Vec::with_capacity(rows * head_size);
        for first in (0..rows).step_by(BLOCK_ROWS) {
            let block = task.row_block(first, &shared, &own);
            block.compute(lanes, &mut buffers);
            buffers.write_means(block.rows.len(), head_size, &mut outputs);
        }
        outputs
    }
}
