//! Attention of a few queries.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use super::attended_segment::AttendedSegment;
use super::panel_lanes::PanelLanes;
use super::panels::LANES;
use super::query::Query;
use super::query_buffers::QueryBuffers;
use super::segment::Segment;
use crate::exp::exp;

/// Queries whose scores are in memory at a time.
pub(super) const BLOCK_QUERIES: usize = 16;

/// A few queries, and the segments that they attend to.
pub(super) struct QueryBlock<'a> {
    queries: &'a [Query<'a>],
    segments: Vec<AttendedSegment<'a>>,
    /// Factor of the scores.
    scale: f32,
}

impl<'a> QueryBlock<'a> {
    /// Creates a block of at most [`BLOCK_QUERIES`] queries, which begins with the query `first` of the
    /// task.
    pub(super) fn new(
        queries: &'a [Query<'a>],
        first: usize,
        segments: &'a [Segment<'a>],
        scale: f32,
    ) -> Self {
        let attended = |segment| AttendedSegment::new(segment, first, queries);
        Self { queries, segments: segments.iter().filter_map(attended).collect(), scale }
    }

    /// Computes the weighted sums of the values. Returns the sum of the weights of each query.
    #[inline(always)]
    pub(super) fn compute<L: PanelLanes>(
        &self,
        lanes: L,
        buffers: &mut QueryBuffers,
    ) -> [f32; BLOCK_QUERIES] {
        for segment in &self.segments {
            segment.multiply_keys(lanes, self.queries, buffers);
        }
        let totals = self.compute_weights(buffers);
        buffers.clear_sums();
        for segment in &self.segments {
            segment.add_values(lanes, buffers);
        }
        totals
    }

    /// Turns the scores into weights. Returns the sum of the weights of each query.
    #[inline(always)]
    fn compute_weights(&self, buffers: &mut QueryBuffers) -> [f32; BLOCK_QUERIES] {
        let mut largest = [[f32::NEG_INFINITY; LANES]; BLOCK_QUERIES];
        for attended in &self.segments {
            let (segment, panels) = (attended.segment, attended.panels());
            let (start, end) = (panels.start * LANES, panels.end * LANES);
            for i in attended.queries.clone() {
                let visible = segment.visible(&self.queries[i].visible);
                let scores = buffers.scores_of(i, segment.first_panel);
                let values = scores.as_flattened_mut();
                values[start..visible.start.max(start)].fill(f32::NEG_INFINITY);
                values[visible.end.max(start)..end].fill(f32::NEG_INFINITY);
                add_largest(&scores[panels.clone()], &mut largest[i]);
            }
        }
        let largest = largest.map(|lanes| lanes.into_iter().fold(f32::NEG_INFINITY, f32::max));
        let mut sums = [[0.; LANES]; BLOCK_QUERIES];
        for attended in &self.segments {
            let panels = attended.panels();
            for i in attended.queries.clone() {
                let scores = buffers.scores_of(i, attended.segment.first_panel);
                to_weights(&mut scores[panels.clone()], largest[i], self.scale, &mut sums[i]);
            }
        }
        sums.map(|lanes| lanes.iter().sum())
    }
}

/// Updates the largest score of each lane.
#[inline(always)]
fn add_largest(scores: &[[f32; LANES]], largest: &mut [f32; LANES]) {
    // The compiler keeps a local array in registers.
    let mut registers = *largest;
    for scores in scores {
        for lane in 0..LANES {
            // A comparison, unlike `f32::max`, is one instruction.
            if scores[lane] > registers[lane] {
                registers[lane] = scores[lane];
            }
        }
    }
    *largest = registers;
}

/// Replaces scores by `e^((score − largest) · scale)` and adds them to the sum of each lane.
#[inline(always)]
fn to_weights(scores: &mut [[f32; LANES]], largest: f32, scale: f32, sums: &mut [f32; LANES]) {
    let mut registers = *sums;
    for scores in scores {
        for lane in 0..LANES {
            scores[lane] = exp((scores[lane] - largest) * scale);
            registers[lane] += scores[lane];
        }
    }
    *sums = registers;
}
