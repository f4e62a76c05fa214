//! Dot products of a few input rows with weight rows in their stored type.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use pulp::x86::V3;
use pulp::{Simd, WithSimd, cast};

use super::lane_sums::LaneSums;
use super::stored_values::{LANES, StoredValues};
use super::weight_rows::{WeightRows, prefetch};

/// Adds the dot products of a chunk of a few input rows and some weight rows to the outputs.
pub(crate) struct StoredProducts<'a, 'b, V: StoredValues> {
    pub(crate) simd: V3,
    /// The input rows, one after the other.
    pub(crate) x: &'a [f32],
    pub(crate) weight: WeightRows<'a, V>,
    /// The weight row of the first output.
    pub(crate) first: usize,
    pub(crate) chunk: &'a Range<usize>,
    /// Range of the outputs of an input row that belongs to the weight rows.
    pub(crate) places: &'a Range<usize>,
    /// The outputs of each input row, at most four.
    pub(crate) outputs: &'a mut [&'b mut [f32]],
}

impl<V: StoredValues> StoredProducts<'_, '_, V> {
    /// Adds the dot products.
    pub(crate) fn add(self) {
        let simd = self.simd;
        // The sums and what a type needs for its conversion fit into 16 registers.
        match (self.outputs.len(), V::PARTS * V::PART_VECTORS) {
            (1, 1) => Simd::vectorize(simd, DotGroup::<V, 1, 4>(self)),
            (2, 1) => Simd::vectorize(simd, DotGroup::<V, 2, 4>(self)),
            (3, 1) => Simd::vectorize(simd, DotGroup::<V, 3, 3>(self)),
            (_, 1) => Simd::vectorize(simd, DotGroup::<V, 4, 3>(self)),
            (1, _) => Simd::vectorize(simd, DotGroup::<V, 1, 2>(self)),
            (2, _) => Simd::vectorize(simd, DotGroup::<V, 2, 2>(self)),
            (3, _) => Simd::vectorize(simd, DotGroup::<V, 3, 2>(self)),
            (_, _) => Simd::vectorize(simd, DotGroup::<V, 4, 2>(self)),
        }
    }
}

/// Computes the products of `R` input rows with `C` weight rows at a time.
///
/// `pulp` enables the vector instructions in this type's method. A closure would be a function of
/// its own without them, and each instruction in it a call.
struct DotGroup<'a, 'b, V: StoredValues, const R: usize, const C: usize>(StoredProducts<'a, 'b, V>);

impl<V: StoredValues, const R: usize, const C: usize> WithSimd for DotGroup<'_, '_, V, R, C> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let StoredProducts { simd, x, weight, first, chunk, places, outputs } = self.0;
        let mut rows = [(&[[0.; LANES]; 0][..], &x[..0]); R];
        for (r, row) in rows.iter_mut().enumerate() {
            *row = x[r * weight.columns..][chunk.clone()].as_chunks();
        }
        for place in places.clone().step_by(C) {
            let mut weights = [V::split_blocks(weight.part_of_row(first + place, chunk)); C];
            for (c, row) in weights.iter_mut().enumerate().skip(1) {
                *row = V::split_blocks(weight.part_of_row(first + place + c, chunk));
            }
            let sums = multiply::<V, R, C>(simd, &rows, &weights, weight.row_bytes() * C);
            sums.add_to(simd, outputs, place..(place + C).min(places.end));
        }
    }
}

/// Whole blocks of a row, then the rest.
type Blocks<'a, B, E> = (&'a [B], &'a [E]);

/// Computes the sums of `R` input rows and `C` weight rows, and prefetches what lies `ahead` bytes
/// after the weights.
#[inline(always)]
fn multiply<V: StoredValues, const R: usize, const C: usize>(
    simd: V3,
    x: &[Blocks<'_, [f32; LANES], f32>; R],
    weight: &[Blocks<'_, V::Block, V::Element>; C],
    ahead: usize,
) -> LaneSums<R, C> {
    let mut sums = LaneSums::<R, C>::new(simd);
    let vectors = x[0].0.len();
    let blocks = vectors / (V::PARTS * V::PART_VECTORS);
    let rows = x.map(|(vectors_of_row, _)| &vectors_of_row[..vectors]);
    let weight_rows = weight.map(|(blocks_of_row, _)| &blocks_of_row[..blocks]);
    for block in 0..blocks {
        let blocks = weight_rows.map(|row| &row[block]);
        for block in blocks {
            prefetch(block, ahead);
        }
        for part in 0..V::PARTS {
            let mut parts = [V::prepare_part(simd, blocks[0], part); C];
            for c in 1..C {
                parts[c] = V::prepare_part(simd, blocks[c], part);
            }
            for vector in 0..V::PART_VECTORS {
                let mut weights = [simd.splat_f32x8(0.); C];
                for c in 0..C {
                    weights[c] = V::widen(simd, blocks[c], &parts[c], vector);
                }
                let k = (block * V::PARTS + part) * V::PART_VECTORS + vector;
                for (r, row) in rows.iter().enumerate() {
                    sums.add_products(simd, r, cast(row[k]), &weights);
                }
            }
        }
    }
    if V::PARTS * V::PART_VECTORS == 1 && !x[0].1.is_empty() {
        let mut weights = [simd.splat_f32x8(0.); C];
        for (weights, (_, rest)) in weights.iter_mut().zip(weight) {
            let block = V::pad_block(rest);
            *weights = V::widen(simd, &block, &V::prepare_part(simd, &block, 0), 0);
        }
        for (r, (_, rest)) in x.iter().enumerate() {
            let mut padded = [0.; LANES];
            padded[..rest.len()].copy_from_slice(rest);
            sums.add_products(simd, r, cast(padded), &weights);
        }
    }
    sums
}
