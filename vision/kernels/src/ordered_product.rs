//! Products `x · weightᵀ` whose sums run in the order of the inner dimension, for AVX2 and FMA.
//!
//! The general matrix kernel (`gemm`) rearranges the whole weight before it multiplies. With few
//! rows, that takes longer than the product. This kernel reads each weight once per
//! [`BLOCK_ROWS`] input rows, and rearranges it in registers. It computes the same fused
//! multiply-adds in the same order as `gemm` does for at least two rows, so its results are
//! bit-identical to those of the general kernel, as [`crate::linear`] uses it. A test compares them.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use pulp::cast;
use pulp::x86::V3;
use rayon::prelude::*;

use crate::elements::MAX_UNSPLIT_LENGTH;
use crate::transposed_tile::{TILE_DEPTH, TILE_ROWS, TileRange, TileRow, load_tile};
use crate::weight_rows::WeightRows;

/// Input rows that are multiplied with a tile before the next one is read.
pub(crate) const BLOCK_ROWS: usize = 128;
/// Input rows that are multiplied together. Their sums stay in registers.
const GROUP_ROWS: usize = 4;
/// Tiles per task of a thread.
const TASK_TILES: usize = 4;

/// A product of `n` rows of `columns` values with `rows` rows of weights.
#[derive(Clone, Copy)]
pub(crate) struct OrderedProduct<'a> {
    /// The input, `n · columns` values.
    pub(crate) x: &'a [f32],
    /// The weight.
    pub(crate) weight: WeightRows<'a>,
    /// Rows of the weight.
    pub(crate) rows: usize,
    /// Columns of the weight.
    pub(crate) columns: usize,
}

impl OrderedProduct<'_> {
    /// Computes the product, row by row. `None` if the processor has no AVX2 and FMA, or if a length
    /// does not match.
    pub(crate) fn compute(&self) -> Option<Vec<f32>> {
        let simd = V3::try_new()?;
        let Self { x, weight, rows, columns } = *self;
        if columns == 0 || !x.len().is_multiple_of(columns) || weight.len() != rows * columns {
            return None;
        }
        let mut product = vec![0.; x.len() / columns * rows];
        let blocks = x.chunks(BLOCK_ROWS * columns);
        for (x, product) in blocks.zip(product.chunks_mut((BLOCK_ROWS * rows).max(1))) {
            let n = x.len() / columns;
            let tiles = rows.div_ceil(TILE_ROWS);
            // One tile after the other, each with one row of outputs per row of `x`.
            let mut outputs = vec![[0.; TILE_ROWS]; tiles * n];
            let tasks = outputs.par_chunks_mut(TASK_TILES * n).enumerate();
            tasks.for_each(|(task, outputs)| {
                let product = OrderedProduct { x, ..*self };
                simd.vectorize(
                    #[inline(always)]
                    || {
                        for (i, outputs) in outputs.chunks_mut(n).enumerate() {
                            let row = (task * TASK_TILES + i) * TILE_ROWS;
                            multiply_tiles(simd, &product, row, outputs);
                        }
                    },
                );
            });
            for (tile, outputs) in outputs.chunks(n).enumerate() {
                let start = tile * TILE_ROWS;
                let end = (start + TILE_ROWS).min(rows);
                for (row, values) in product.chunks_mut(rows).zip(outputs) {
                    row[start..end].copy_from_slice(&values[..end - start]);
                }
            }
        }
        Some(product)
    }
}

/// Computes the outputs of [`TILE_ROWS`] rows of the weight from `row`.
#[inline(always)]
fn multiply_tiles(
    simd: V3,
    product: &OrderedProduct<'_>,
    row: usize,
    outputs: &mut [[f32; TILE_ROWS]],
) {
    let OrderedProduct { x, weight, rows, columns } = *product;
    let zero = [simd.splat_f32x8(0.); 2];
    let mut tile = [zero; TILE_DEPTH];
    let mut sums = [zero; BLOCK_ROWS];
    let sums = &mut sums[..outputs.len()];
    for block in (0..columns).step_by(MAX_UNSPLIT_LENGTH) {
        let block_end = (block + MAX_UNSPLIT_LENGTH).min(columns);
        sums.fill(zero);
        for start in (block..block_end).step_by(TILE_DEPTH) {
            let len = TILE_DEPTH.min(block_end - start);
            load_tile(simd, &weight, TileRange { row, rows, columns, start, len }, &mut tile);
            let tile = &tile[..len];
            let x = |i: usize| &x[i * columns + start..][..len];
            let mut groups = sums.chunks_exact_mut(GROUP_ROWS);
            let mut i = 0;
            for group in &mut groups {
                add_products::<GROUP_ROWS>(simd, tile, |j| x(i + j), group);
                i += GROUP_ROWS;
            }
            let rest = groups.into_remainder();
            match rest.len() {
                1 => add_products::<1>(simd, tile, |j| x(i + j), rest),
                2 => add_products::<2>(simd, tile, |j| x(i + j), rest),
                3 => add_products::<3>(simd, tile, |j| x(i + j), rest),
                _ => {}
            }
        }
        for (output, sum) in outputs.iter_mut().zip(&*sums) {
            let sum: [f32; TILE_ROWS] = cast(*sum);
            if block == 0 {
                *output = sum;
            } else {
                output.iter_mut().zip(sum).for_each(|(output, sum)| *output += sum);
            }
        }
    }
}

/// Adds the products of a tile with the same columns of `N` rows to their sums.
#[inline(always)]
fn add_products<'a, const N: usize>(
    simd: V3,
    tile: &[TileRow],
    x: impl Fn(usize) -> &'a [f32],
    sums: &mut [TileRow],
) {
    let Ok(sums) = <&mut [TileRow; N]>::try_from(sums) else {
        return;
    };
    // The compiler keeps a local array in registers.
    let mut registers = *sums;
    let x: [&[f32]; N] = std::array::from_fn(|i| &x(i)[..tile.len()]);
    for (k, weights) in tile.iter().enumerate() {
        for (sum, x) in registers.iter_mut().zip(x) {
            let x = simd.splat_f32x8(x[k]);
            for (sum, weight) in sum.iter_mut().zip(weights) {
                *sum = simd.mul_add_f32x8(*weight, x, *sum);
            }
        }
    }
    *sums = registers;
}
