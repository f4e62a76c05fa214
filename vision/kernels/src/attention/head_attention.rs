//! Attention of the queries of one key head.

#![expect(
    clippy::inline_always,
    reason = "the loops need to be part of the function that enables vector instructions"
)]

use pulp::{Scalar, Simd, WithSimd};

use super::panel_lanes::PanelLanes;
use super::query::Query;
use super::query_block::{BLOCK_QUERIES, QueryBlock};
use super::query_buffers::QueryBuffers;
use super::segment::Segment;
use super::sequence_queries::SequenceQueries;
use super::settings::AttentionSettings;

/// Sizes of an attention.
#[derive(Clone, Copy)]
pub(super) struct HeadSizes {
    /// Number of query heads (h).
    pub(super) query_heads: usize,
    /// Number of query heads per key head.
    pub(super) heads_per_key: usize,
    /// Number of values of a head (d).
    pub(super) head_size: usize,
}

/// The queries of sequences for one key head.
pub(super) struct HeadAttention<'a> {
    pub(super) sequences: &'a [SequenceQueries<'a>],
    /// Number of first blocks that all sequences have in common.
    pub(super) shared_blocks: usize,
    pub(super) key_head: usize,
    pub(super) sizes: HeadSizes,
    pub(super) settings: AttentionSettings,
}

impl<'a> HeadAttention<'a> {
    /// Computes the outputs of all queries, ordered by sequence, token and head.
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

    /// Returns all queries, in the order of the outputs.
    fn queries(&self) -> Vec<Query<'a>> {
        let HeadSizes { query_heads, heads_per_key, head_size } = self.sizes;
        let of_token = |sequence: &SequenceQueries<'a>, token: usize| {
            let first = token * query_heads + self.key_head * heads_per_key;
            let values = &sequence.queries[first * head_size..][..heads_per_key * head_size];
            let visible = sequence.visible_to(token, self.settings.window);
            values
                .chunks_exact(head_size)
                .map(move |values| Query { values, visible: visible.clone() })
        };
        let of_sequence = |sequence: &'a SequenceQueries<'a>| {
            (0..sequence.new_tokens).flat_map(move |token| of_token(sequence, token))
        };
        self.sequences.iter().flat_map(of_sequence).collect()
    }

    /// Returns the segments of the shared blocks, then those of the other blocks of each sequence.
    fn segments(&self) -> Vec<Segment<'a>> {
        let queries_of =
            |sequence: &SequenceQueries| sequence.new_tokens * self.sizes.heads_per_key;
        let all_queries = 0..self.sequences.iter().map(queries_of).sum();
        let mut segments: Vec<Segment> = Vec::new();
        let shared = self.sequences.first().map_or(&[][..], |first| first.blocks);
        for block in &shared[..self.shared_blocks] {
            let before = segments.last();
            segments.push(Segment::new(block, self.key_head, before, all_queries.clone()));
        }
        let mut first_query = 0;
        for sequence in self.sequences {
            let queries = first_query..first_query + queries_of(sequence);
            first_query = queries.end;
            let mut before = self.shared_blocks.checked_sub(1);
            for block in &sequence.blocks[self.shared_blocks..] {
                let last = before.map(|before| &segments[before]);
                let segment = Segment::new(block, self.key_head, last, queries.clone());
                before = Some(segments.len());
                segments.push(segment);
            }
        }
        segments
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
        let (queries, segments) = (task.queries(), task.segments());
        let panels = segments.iter().map(Segment::end_panel).max();
        let head_size = task.sizes.head_size;
        let block_size = queries.len().min(BLOCK_QUERIES);
        let mut buffers = QueryBuffers::new(block_size, panels.unwrap_or(0), head_size);
        let mut outputs = Vec::with_capacity(queries.len() * head_size);
        for (i, queries) in queries.chunks(BLOCK_QUERIES).enumerate() {
            let scale = task.settings.scale;
            let block = QueryBlock::new(queries, i * BLOCK_QUERIES, &segments, scale);
            let totals = block.compute(lanes, &mut buffers);
            buffers.write_means(&totals[..queries.len()], head_size, &mut outputs);
        }
        outputs
    }
}
