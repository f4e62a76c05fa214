//! Register tiles: the products of a few packed input rows with a few packed weight rows.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use pulp::x86::{V3, V4};
use pulp::{cast, f32x8, f32x16};

use super::input_lanes::InputLanes;
use super::lane_sums::{LaneSums, PairSums};
use super::stored_values::LANES;
use super::weight_rows::prefetch_address;

/// Packed rows that a tile multiplies.
#[derive(Clone, Copy)]
pub(crate) struct TileGroups<'a> {
    /// A group of input rows.
    pub(crate) x: &'a [[f32; LANES]],
    /// A group of weight rows.
    pub(crate) weights: &'a [[f32; LANES]],
    /// Vectors of a row after which neighbouring partial sums are added.
    pub(crate) sum_steps: usize,
    /// What the tile prefetches while it multiplies.
    pub(crate) fetch: Fetch,
}

/// Memory that a tile prefetches while it multiplies: the next part in each step.
#[derive(Clone, Copy)]
pub(crate) struct Fetch {
    address: *const i8,
    /// Bytes per step.
    step: usize,
}

impl Fetch {
    /// Spreads the prefetch of some elements evenly over the steps of a tile.
    #[inline(always)]
    pub(crate) fn new<E>(elements: &[E], steps: usize) -> Self {
        let step = size_of_val(elements).div_ceil(steps.max(1));
        Self { address: elements.as_ptr().cast(), step }
    }
}

/// A register tile. Each dot product has the same eight partial sums in all tiles, so their results
/// are equal.
pub(crate) trait Tile: InputLanes {
    /// Number of input rows.
    const INPUTS: usize;
    /// Number of weight rows.
    const WEIGHTS: usize;
    /// Up to this number of input rows, weights are read where they are stored.
    const MAX_DIRECT_ROWS: usize;
    /// True if the tile prefetches [`TileGroups::fetch`].
    const FETCHES: bool;

    /// Returns the place of a weight row in its group.
    fn place(self, row: usize) -> usize;

    /// Adds the products of groups of rows to the outputs of each input row at `places`.
    fn add_products(self, groups: TileGroups, outputs: &mut [&mut [f32]], places: Range<usize>);
}

/// AVX2 with FMA: 12 of the 16 registers are accumulators, one for each dot product.
impl Tile for V3 {
    const INPUTS: usize = 4;
    const WEIGHTS: usize = 3;
    const MAX_DIRECT_ROWS: usize = 4;
    const FETCHES: bool = true;

    #[inline(always)]
    fn place(self, row: usize) -> usize {
        row
    }

    #[inline(always)]
    fn add_products(self, groups: TileGroups, outputs: &mut [&mut [f32]], places: Range<usize>) {
        let mut pairs = PairSums::<V3, 4, 3>::new(self);
        let TileGroups { x, weights, sum_steps, fetch } = groups;
        let mut address = fetch.address;
        let (x, weights) = (x.as_chunks::<4>().0, weights.as_chunks::<3>().0);
        for (x, weights) in x.chunks(sum_steps).zip(weights.chunks(sum_steps)) {
            let mut sums = LaneSums::<V3, 4, 3>::new(self);
            for (x, weights) in x.iter().zip(weights) {
                prefetch_address(address);
                address = address.wrapping_add(fetch.step);
                let weights: [f32x8; 3] = cast(*weights);
                for (r, x) in x.iter().enumerate() {
                    sums.add_products(self, r, cast(*x), &weights);
                }
            }
            pairs.add(self, sums);
        }
        pairs.add_to(self, outputs, places);
    }
}

/// AVX-512: 24 of the 32 registers are accumulators, each for two weight rows: the first and the
/// fifth, the second and the sixth, and so on. The horizontal sums are then in the order of the
/// outputs.
impl Tile for V4 {
    const INPUTS: usize = 6;
    const WEIGHTS: usize = 8;
    const MAX_DIRECT_ROWS: usize = usize::MAX;
    const FETCHES: bool = false;

    #[inline(always)]
    fn place(self, row: usize) -> usize {
        row % 4 * 2 + row / 4
    }

    #[inline(always)]
    fn add_products(self, groups: TileGroups, outputs: &mut [&mut [f32]], places: Range<usize>) {
        let mut pairs = [[self.splat_f32x16(0.); 2]; 6];
        let TileGroups { x, weights, sum_steps, .. } = groups;
        let (x, weights) = (x.as_chunks::<6>().0, weights.as_chunks::<8>().0);
        for (x, weights) in x.chunks(sum_steps).zip(weights.chunks(sum_steps)) {
            let mut sums = [[self.splat_f32x16(0.); 4]; 6];
            for (x, weights) in x.iter().zip(weights) {
                let weights: [f32x16; 4] = cast(*weights);
                for (sums, x) in sums.iter_mut().zip(x) {
                    let x = cast(self.avx512dq._mm512_broadcast_f32x8(cast(*x)));
                    for (sum, weights) in sums.iter_mut().zip(&weights) {
                        *sum = self.mul_add_f32x16(x, *weights, *sum);
                    }
                }
            }
            for (pairs, sums) in pairs.iter_mut().zip(&sums) {
                for (pair, sums) in pairs.iter_mut().zip(sums.as_chunks::<2>().0) {
                    *pair = self.add(*pair, self.add_neighbours(sums[0], sums[1]));
                }
            }
        }
        for (pairs, outputs) in pairs.into_iter().zip(outputs) {
            let totals: [f32; 8] = cast(add_lanes(self, pairs));
            for (output, total) in outputs[places.clone()].iter_mut().zip(totals) {
                *output += total;
            }
        }
    }
}

/// Adds the four sums of neighbours of each dot product: first neighbours, then halves.
#[inline(always)]
pub(crate) fn add_lanes(simd: V4, [first, second]: [f32x16; 2]) -> f32x8 {
    // Quarters: the lower half of rows 0 to 3, their upper half, then those of rows 4 to 7.
    let pairs = cast(simd.add_neighbours(first, second));
    let low = simd.avx512f._mm512_shuffle_f32x4::<0b10_00_10_00>(pairs, pairs);
    let high = simd.avx512f._mm512_shuffle_f32x4::<0b11_01_11_01>(pairs, pairs);
    let totals: [f32x8; 2] = cast(simd.avx512f._mm512_add_ps(low, high));
    totals[0]
}
