//! Dot products of packed rows.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use pulp::x86::V3;
use pulp::{Simd, WithSimd, cast};

use super::lane_sums::LaneSums;
use super::packed_rows::{INPUT_GROUP, PackedInput, WEIGHT_GROUP, group_vectors};
use super::stored_values::LANES;
use super::weight_rows::prefetch;

/// Vectors of a cache line.
const LINE_VECTORS: usize = 2;

/// Adds the dot products of a chunk of all input rows and some weight rows to the outputs.
pub(crate) struct PackedProducts<'a, 'b> {
    pub(crate) simd: V3,
    pub(crate) x: &'a PackedInput,
    /// The weight rows, in groups of [`WEIGHT_GROUP`].
    pub(crate) panel: &'a [[f32; LANES]],
    pub(crate) chunk: &'a Range<usize>,
    /// Range of the outputs of an input row that belongs to the weight rows.
    pub(crate) places: &'a Range<usize>,
    pub(crate) outputs: &'a mut [&'b mut [f32]],
}

impl WithSimd for PackedProducts<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { simd, x, panel, chunk, places, outputs } = self;
        let weights = panel.chunks_exact(group_vectors(chunk));
        let weight_groups = places.len().div_ceil(WEIGHT_GROUP);
        for group in 0..outputs.len().div_ceil(INPUT_GROUP) {
            // Each group of weights also fetches a part of what the next group of inputs needs.
            let (used, later) = outputs.split_at_mut(outputs.len().min((group + 1) * INPUT_GROUP));
            let outputs = &mut used[group * INPUT_GROUP..];
            let next_x = x.group((group + 1).min(x.groups() - 1), chunk);
            let fetched = next_x.len().div_ceil(weight_groups);
            let mut next_x = next_x.chunks(fetched);
            let x = x.group(group, chunk);
            for (place, weight) in places.clone().step_by(WEIGHT_GROUP).zip(weights.clone()) {
                for vectors in next_x.next().unwrap_or_default().chunks(LINE_VECTORS) {
                    prefetch(&vectors[0], 0);
                }
                for outputs in later.iter().take(INPUT_GROUP) {
                    prefetch(&outputs[place], 0);
                }
                let mut sums = LaneSums::<INPUT_GROUP, WEIGHT_GROUP>::new(simd);
                let x = x.as_chunks::<INPUT_GROUP>().0;
                for (x, weight) in x.iter().zip(weight.as_chunks::<WEIGHT_GROUP>().0) {
                    let mut weights = [simd.splat_f32x8(0.); WEIGHT_GROUP];
                    for (lanes, weight) in weights.iter_mut().zip(weight) {
                        *lanes = cast(*weight);
                    }
                    for (r, x) in x.iter().enumerate() {
                        sums.add_products(simd, r, cast(*x), &weights);
                    }
                }
                sums.add_to(simd, outputs, place..(place + WEIGHT_GROUP).min(places.end));
            }
        }
    }
}
