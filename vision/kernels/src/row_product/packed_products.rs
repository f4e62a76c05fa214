//! Dot products of packed rows.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::packed_rows::{PackedInput, group_vectors};
use super::stored_values::LANES;
use super::tile::{Fetch, Tile, TileGroups};
use super::weight_rows::prefetch;

/// Vectors of a cache line.
const LINE_VECTORS: usize = 2;

/// Adds the dot products of a chunk of all input rows and some weight rows to the outputs.
pub(crate) struct PackedProducts<'a, 'b, T, E> {
    pub(crate) tile: T,
    pub(crate) x: &'a PackedInput,
    /// The weight rows, in groups.
    pub(crate) panel: &'a [[f32; LANES]],
    pub(crate) chunk: &'a Range<usize>,
    /// Vectors after which neighbouring partial sums are added.
    pub(crate) sum_steps: usize,
    /// Weights of the next panel, in their stored type, to prefetch.
    pub(crate) fetched: &'a [E],
    /// Range of the outputs of an input row that belongs to the weight rows.
    pub(crate) places: &'a Range<usize>,
    pub(crate) outputs: &'a mut [&'b mut [f32]],
}

impl<T: Tile, E> WithSimd for PackedProducts<'_, '_, T, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { tile, x, panel, chunk, sum_steps, fetched, places, outputs } = self;
        let weights = panel.chunks_exact(group_vectors::<T>(chunk));
        let weight_groups = places.len().div_ceil(T::WEIGHTS);
        let steps = chunk.len().div_ceil(LANES);
        let tiles = weight_groups * x.groups();
        let mut fetched = fetched.chunks(fetched.len().div_ceil(tiles).max(1));
        for group in 0..outputs.len().div_ceil(T::INPUTS) {
            // Each group of weights also fetches a part of what the next group of inputs needs.
            let (used, later) = outputs.split_at_mut(outputs.len().min((group + 1) * T::INPUTS));
            let outputs = &mut used[group * T::INPUTS..];
            let next_x = x.group((group + 1).min(x.groups() - 1), chunk);
            let part = next_x.len().div_ceil(weight_groups);
            let mut next_x = next_x.chunks(part);
            let x = x.group(group, chunk);
            for (place, weights) in places.clone().step_by(T::WEIGHTS).zip(weights.clone()) {
                for vectors in next_x.next().unwrap_or_default().chunks(LINE_VECTORS) {
                    prefetch(&vectors[0], 0);
                }
                for outputs in later.iter().take(T::INPUTS) {
                    prefetch(&outputs[place], 0);
                }
                let places = place..(place + T::WEIGHTS).min(places.end);
                let fetch = Fetch::new(fetched.next().unwrap_or_default(), steps);
                let groups = TileGroups { x, weights, sum_steps, fetch };
                tile.add_products(groups, outputs, places);
            }
        }
    }
}
