//! Dot products of packed rows.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::packed_rows::{PackedInput, group_vectors};
use super::stored_values::LANES;
use super::tile::{Tile, TileGroups};
use super::weight_rows::prefetch;

/// Vectors of a cache line.
const LINE_VECTORS: usize = 2;

/// Adds the dot products of a chunk of all input rows and some weight rows to the outputs.
pub(crate) struct PackedProducts<'a, 'b, T> {
    pub(crate) tile: T,
    pub(crate) x: &'a PackedInput,
    /// The weight rows, in groups.
    pub(crate) panel: &'a [[f32; LANES]],
    pub(crate) chunk: &'a Range<usize>,
    /// Vectors after which neighbouring partial sums are added.
    pub(crate) sum_steps: usize,
    /// Range of the outputs of an input row that belongs to the weight rows.
    pub(crate) places: &'a Range<usize>,
    pub(crate) outputs: &'a mut [&'b mut [f32]],
}

impl<T: Tile> WithSimd for PackedProducts<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { tile, x, panel, chunk, sum_steps, places, outputs } = self;
        let weights = panel.chunks_exact(group_vectors::<T>(chunk));
        let weight_groups = places.len().div_ceil(T::WEIGHTS);
        for group in 0..outputs.len().div_ceil(T::INPUTS) {
            // Each group of weights also fetches a part of what the next group of inputs needs.
            let (used, later) = outputs.split_at_mut(outputs.len().min((group + 1) * T::INPUTS));
            let outputs = &mut used[group * T::INPUTS..];
            let next_x = x.group((group + 1).min(x.groups() - 1), chunk);
            let fetched = next_x.len().div_ceil(weight_groups);
            let mut next_x = next_x.chunks(fetched);
            let x = x.group(group, chunk);
            for (place, weights) in places.clone().step_by(T::WEIGHTS).zip(weights.clone()) {
                for vectors in next_x.next().unwrap_or_default().chunks(LINE_VECTORS) {
                    prefetch(&vectors[0], 0);
                }
                for outputs in later.iter().take(T::INPUTS) {
                    prefetch(&outputs[place], 0);
                }
                let places = place..(place + T::WEIGHTS).min(places.end);
                let groups = TileGroups { x, weights, sum_steps };
                tile.add_products(groups, outputs, places);
            }
        }
    }
}
