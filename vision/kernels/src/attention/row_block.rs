//! Attention of a few query rows.

#![expect(
    clippy::inline_always,
    reason = "the loops need to be part of the function that enables vector instructions"
)]

use std::ops::Range;

use super::attended_segment::AttendedSegment;
use super::panel_lanes::PanelLanes;
use super::panel_product::LANES;
use super::row_buffers::RowBuffers;
use super::segment::Segment;
use crate::exp::exp;

/// Query rows whose scores are kept at a time.
pub(super) const BLOCK_ROWS: usize = 16;

/// A query, and the positions that it attends to.
pub(super) struct QueryRow<'a> {
    pub(super) query: &'a [f32],
    pub(super) visible: Range<usize>,
}

/// A few query rows, and the segments that they attend to.
pub(super) struct RowBlock<'a> {
    pub(super) rows: Vec<QueryRow<'a>>,
    segments: Vec<AttendedSegment<'a>>,
    /// Factor of the scores.
    scale: f32,
}

impl<'a> RowBlock<'a> {
    pub(super) fn new(scale: f32) -> Self {
        Self { rows: Vec::with_capacity(BLOCK_ROWS), segments: Vec::new(), scale }
    }

    /// Adds segments that some of the rows attend to.
    pub(super) fn add_segments(&mut self, segments: &[Segment<'a>], rows: &Range<usize>) {
        let visible = self.rows[rows.clone()].iter().map(|row| row.visible.clone());
        let visible = visible.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
        if let Some(positions) = visible {
            let attended =
                |segment: &Segment<'a>| AttendedSegment::new(*segment, rows.clone(), &positions);
            self.segments.extend(segments.iter().map(attended));
        }
    }

    /// Computes the attention of all rows.
    #[inline(always)]
    pub(super) fn compute<L: PanelLanes>(&self, lanes: L, buffers: &mut RowBuffers) {
        for segment in &self.segments {
            segment.multiply_keys(lanes, &self.rows, buffers);
        }
        self.compute_weights(buffers);
        buffers.sums.fill([0.; LANES]);
        for segment in &self.segments {
            segment.add_values(lanes, buffers);
        }
    }

    /// Turns the scores into weights, and computes the sum of the weights of each row.
    #[inline(always)]
    fn compute_weights(&self, buffers: &mut RowBuffers) {
        for (i, row) in self.rows.iter().enumerate() {
            let scores = buffers.scores_of(i).as_flattened_mut();
            let mut largest = [f32::NEG_INFINITY; LANES];
            for part in self.segments.iter().filter(|part| part.rows.contains(&i)) {
                let visible = part.segment.visible(&row.visible);
                let (start, end) = (part.tiles.start, part.tiles.end);
                let scores = &mut scores[part.segment.offset..];
                scores[start..visible.start.max(start)].fill(f32::NEG_INFINITY);
                scores[visible.end.max(start)..end].fill(f32::NEG_INFINITY);
                add_largest(&scores[start..end], &mut largest);
            }
            let largest = largest.into_iter().fold(f32::NEG_INFINITY, f32::max);
            let mut sums = [0.; LANES];
            for part in self.segments.iter().filter(|part| part.rows.contains(&i)) {
                let scores = &mut scores[part.segment.offset..][part.tiles.clone()];
                to_weights(scores, largest, self.scale, &mut sums);
            }
            buffers.totals[i] = sums.iter().sum();
        }
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
