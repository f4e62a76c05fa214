//! Dot products of a few input rows with weight rows in their stored type.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::input_lanes::InputLanes;
use super::lane_sums::{LaneSums, PairSums};
use super::packed_rows::{PackedInput, column_chunks};
use super::stored_values::{LANES, StoredValues};
use super::weight_rows::{WeightRows, prefetch_bytes};

/// Most registers of input rows that are multiplied together.
pub(crate) const MAX_REGISTERS: usize = 4;

/// Adds the dot products of a few input rows and some weight rows to the outputs.
pub(crate) struct StoredProducts<'a, 'b, L, V: StoredValues> {
    pub(crate) lanes: L,
    /// The input, in groups of the rows of a register.
    pub(crate) x: &'a PackedInput,
    /// Registers of the input, at most [`MAX_REGISTERS`].
    pub(crate) registers: Range<usize>,
    pub(crate) weight: WeightRows<'a, V>,
    /// The weight row of the first output.
    pub(crate) first: usize,
    /// Range of the outputs of an input row that belongs to the weight rows.
    pub(crate) places: &'a Range<usize>,
    /// The outputs of each input row.
    pub(crate) outputs: &'a mut [&'b mut [f32]],
}

impl<L: InputLanes, V: StoredValues> StoredProducts<'_, '_, L, V> {
    /// Adds the dot products.
    pub(crate) fn add(self) {
        let lanes = self.lanes;
        let is_dense = V::PARTS * V::PART_VECTORS == 1;
        // The sums and what a type needs for its conversion fit into 16 registers, or 32 of AVX-512.
        match (self.registers.len(), is_dense, L::ROWS) {
            (1, true, _) => lanes.vectorize(DotGroup::<L, V, 1, 4>(self)),
            (2, true, 1) => lanes.vectorize(DotGroup::<L, V, 2, 4>(self)),
            (2, true, _) => lanes.vectorize(DotGroup::<L, V, 2, 6>(self)),
            (3, true, 1) => lanes.vectorize(DotGroup::<L, V, 3, 3>(self)),
            (3, true, _) => lanes.vectorize(DotGroup::<L, V, 3, 6>(self)),
            (_, true, 1) => lanes.vectorize(DotGroup::<L, V, 4, 3>(self)),
            (_, true, _) => lanes.vectorize(DotGroup::<L, V, 4, 6>(self)),
            (1, false, _) => lanes.vectorize(DotGroup::<L, V, 1, 2>(self)),
            (2, false, _) => lanes.vectorize(DotGroup::<L, V, 2, 2>(self)),
            (3, false, _) => lanes.vectorize(DotGroup::<L, V, 3, 2>(self)),
            (_, false, _) => lanes.vectorize(DotGroup::<L, V, 4, 2>(self)),
        }
    }
}

/// Computes the products of the input rows in `R` registers with `C` weight rows at a time.
///
/// `pulp` enables the vector instructions in this type's method. A closure would be a function of
/// its own without them, and each instruction in it a call.
struct DotGroup<'a, 'b, L, V: StoredValues, const R: usize, const C: usize>(
    StoredProducts<'a, 'b, L, V>,
);

impl<L: InputLanes, V: StoredValues, const R: usize, const C: usize> WithSimd
    for DotGroup<'_, '_, L, V, R, C>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let StoredProducts { lanes, x, registers, weight, first, places, outputs } = self.0;
        for place in places.clone().step_by(C) {
            // The next rows are fetched in the order of their addresses.
            let mut ahead = weight.row_bytes() * C;
            for chunk in column_chunks(weight.columns) {
                let mut rows = [L::split(x.group(registers.start, &chunk)); R];
                for (r, row) in rows.iter_mut().enumerate().skip(1) {
                    *row = L::split(x.group(registers.start + r, &chunk));
                }
                let elements = weight.part_of_row(first + place, &chunk);
                let mut weights = [elements; C];
                for (c, row) in weights.iter_mut().enumerate().skip(1) {
                    *row = weight.part_of_row(first + place + c, &chunk);
                }
                let sums = multiply_chunk::<L, V, R, C>(lanes, &rows, &weights, ahead);
                ahead += size_of_val(elements) * (C - 1);
                sums.add_to(lanes, outputs, place..(place + C).min(places.end));
            }
        }
    }
}

/// Multiplies a chunk of `R` registers of input rows and `C` weight rows, and prefetches what begins
/// `ahead` bytes after the first weight.
#[inline(always)]
fn multiply_chunk<L: InputLanes, V: StoredValues, const R: usize, const C: usize>(
    lanes: L,
    x: &[&[L::Values]; R],
    weights: &[&[V::Element]; C],
    ahead: usize,
) -> PairSums<L, R, C> {
    let mut pairs = PairSums::new(lanes);
    let steps = x[0].len();
    for start in (0..steps).step_by(V::SUM_STEPS) {
        let end = (start + V::SUM_STEPS).min(steps);
        let part = x.map(|row| &row[start..end]);
        // Only dense types add neighbouring sums within a chunk.
        let part_weights = if V::SUM_STEPS < steps {
            weights.map(|row| &row[start * LANES..(end * LANES).min(row.len())])
        } else {
            *weights
        };
        let ahead = ahead + (C - 1) * start * LANES * size_of::<V::Element>();
        pairs.add(lanes, multiply::<L, V, R, C>(lanes, &part, &part_weights, ahead));
    }
    pairs
}

/// Computes the sums of `R` registers of input rows and `C` weight rows, and prefetches what begins
/// `ahead` bytes after the first weight.
#[inline(always)]
fn multiply<L: InputLanes, V: StoredValues, const R: usize, const C: usize>(
    lanes: L,
    x: &[&[L::Values]; R],
    weights: &[&[V::Element]; C],
    ahead: usize,
) -> LaneSums<L, R, C> {
    let simd = lanes.narrow();
    let mut sums = LaneSums::<L, R, C>::new(lanes);
    let steps = x[0].len();
    let rows = x.map(|row| &row[..steps]);
    let parts = weights.map(V::split_blocks);
    let blocks = parts[0].0.len();
    let weight_rows = parts.map(|(blocks_of_row, _)| &blocks_of_row[..blocks]);
    let block_steps = V::PARTS * V::PART_VECTORS;
    let size = size_of::<V::Block>();
    for (i, first) in weight_rows[0].iter().enumerate() {
        prefetch_bytes(first, ahead + i * size * (C - 1), size * C);
        let blocks = weight_rows.map(|row| &row[i]);
        for part in 0..V::PARTS {
            let mut parts = [V::prepare_part(simd, blocks[0], part); C];
            for c in 1..C {
                parts[c] = V::prepare_part(simd, blocks[c], part);
            }
            for vector in 0..V::PART_VECTORS {
                let mut weights = [lanes.zero(); C];
                for c in 0..C {
                    weights[c] = lanes.repeat(V::widen(simd, blocks[c], &parts[c], vector));
                }
                let k = i * block_steps + part * V::PART_VECTORS + vector;
                for (r, row) in rows.iter().enumerate() {
                    sums.add_products(lanes, r, lanes.load(row[k]), &weights);
                }
            }
        }
    }
    if block_steps == 1 && blocks < steps {
        let mut weights = [lanes.zero(); C];
        for (weights, (_, rest)) in weights.iter_mut().zip(&parts) {
            let block = V::pad_block(rest);
            let prepared = V::prepare_part(simd, &block, 0);
            *weights = lanes.repeat(V::widen(simd, &block, &prepared, 0));
        }
        for (r, row) in rows.iter().enumerate() {
            sums.add_products(lanes, r, lanes.load(row[blocks]), &weights);
        }
    }
    sums
}
