//! Products `x · weightᵀ` whose sums run in the order of the inner dimension, for AVX2 and FMA.
//!
//! The general matrix kernel (`gemm`) rearranges the whole weight before it multiplies. With few
//! rows, that takes longer than the product. This kernel reads each weight once per 128 input rows,
//! and converts and rearranges it in registers. It computes the same fused multiply-adds in the same
//! order as `gemm` does for at least two rows, so its results are bit-identical to those of the
//! general kernel, as [`crate::linear`] uses it. A test compares them.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use pulp::bytemuck::cast_slice;
use pulp::x86::V3;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::transposed_tile::{TILE_DEPTH, TILE_ROWS, TileRange, TileRow, load_tile};
use super::weight_rows::WeightRows;
use crate::elements::MAX_UNSPLIT_LENGTH;

/// Input rows that are multiplied with a tile before the next one is read.
const BLOCK_ROWS: usize = 128;
/// Most input rows that are multiplied together. Their sums stay in registers.
const GROUP_ROWS: usize = 6;
/// Products with fewer multiplications run on one thread, because starting others takes longer.
const MIN_PARALLEL_WORK: usize = 1 << 20;
/// Tasks per thread.
const THREAD_TASKS: usize = 4;

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
        if rows > 0 {
            let blocks = x.chunks(BLOCK_ROWS * columns);
            for (x, product) in blocks.zip(product.chunks_mut(BLOCK_ROWS * rows)) {
                OrderedProduct { x, ..*self }.compute_block(simd, product);
            }
        }
        Some(product)
    }

    /// Computes the product of at most [`BLOCK_ROWS`] rows.
    fn compute_block(&self, simd: V3, product: &mut [f32]) {
        let Self { rows, columns, .. } = *self;
        let tiles = rows.div_ceil(TILE_ROWS);
        let tasks = rayon::current_num_threads() * THREAD_TASKS;
        let is_parallel = product.len() * columns >= MIN_PARALLEL_WORK;
        let task_tiles = if is_parallel { tiles.div_ceil(tasks) } else { tiles };
        let width = task_tiles * TILE_ROWS;
        let new_task = |row| TileTask { simd, product: self, row, outputs: Vec::new() };
        let mut tasks: Vec<_> = (0..rows).step_by(width).map(new_task).collect();
        for row in product.chunks_mut(rows) {
            for (task, outputs) in tasks.iter_mut().zip(row.chunks_mut(width)) {
                task.outputs.push(outputs);
            }
        }
        let run = |task: TileTask<'_>| Simd::vectorize(simd, task);
        if is_parallel {
            tasks.into_par_iter().for_each(run);
        } else {
            for task in tasks {
                run(task);
            }
        }
    }
}

/// Computes the outputs of consecutive tiles.
///
/// `pulp` enables the vector instructions in this type's method. A closure would be a function of
/// its own without them, and each instruction in it a call.
struct TileTask<'a> {
    simd: V3,
    product: &'a OrderedProduct<'a>,
    /// First row of the weight.
    row: usize,
    /// The outputs of each row of `x`.
    outputs: Vec<&'a mut [f32]>,
}

impl WithSimd for TileTask<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { simd, product, row: first_row, mut outputs } = self;
        let OrderedProduct { x, weight, rows, columns } = *product;
        let width = outputs.first().map_or(0, |outputs| outputs.len());
        let zero = [simd.splat_f32x8(0.); 2];
        let mut tile = [zero; TILE_DEPTH];
        let mut sums = vec![zero; outputs.len()];
        for done in (0..width).step_by(TILE_ROWS) {
            let (row, tile_end) = (first_row + done, (done + TILE_ROWS).min(width));
            for block in (0..columns).step_by(MAX_UNSPLIT_LENGTH) {
                let block_end = (block + MAX_UNSPLIT_LENGTH).min(columns);
                sums.fill(zero);
                for start in (block..block_end).step_by(TILE_DEPTH) {
                    let len = TILE_DEPTH.min(block_end - start);
                    let range = TileRange { row, rows, columns, start, len };
                    load_tile(simd, &weight, &range, &mut tile);
                    add_tile(simd, &tile[..len], &x[start..], columns, &mut sums);
                }
                for (outputs, sums) in outputs.iter_mut().zip(&sums) {
                    let outputs = &mut outputs[done..tile_end];
                    let sums: &[f32] = cast_slice(sums);
                    if block == 0 {
                        outputs.copy_from_slice(&sums[..outputs.len()]);
                    } else {
                        for (output, sum) in outputs.iter_mut().zip(sums) {
                            *output += sum;
                        }
                    }
                }
            }
        }
    }
}

/// Adds the products of a tile with the same columns of each row to the sums of the rows. Each row
/// of `x` starts `columns` values after the one before it.
#[inline(always)]
fn add_tile(simd: V3, tile: &[TileRow], x: &[f32], columns: usize, sums: &mut [TileRow]) {
    let (n, groups) = (sums.len(), sums.len().div_ceil(GROUP_ROWS));
    let mut start = 0;
    for group in 1..=groups {
        // The sizes of groups differ by at most one.
        let end = n * group / groups;
        let x = &x[start * columns..];
        let sums = &mut sums[start..end];
        match sums.len() {
            1 => add_products::<1>(simd, tile, x, columns, sums),
            2 => add_products::<2>(simd, tile, x, columns, sums),
            3 => add_products::<3>(simd, tile, x, columns, sums),
            4 => add_products::<4>(simd, tile, x, columns, sums),
            5 => add_products::<5>(simd, tile, x, columns, sums),
            _ => add_products::<GROUP_ROWS>(simd, tile, x, columns, sums),
        }
        start = end;
    }
}

/// Adds the products of a tile with the same columns of `N` rows to their sums.
#[inline(always)]
fn add_products<const N: usize>(
    simd: V3,
    tile: &[TileRow],
    x: &[f32],
    columns: usize,
    sums: &mut [TileRow],
) {
    let Some(sums) = sums.first_chunk_mut::<N>() else {
        return;
    };
    let mut rows = [&x[..0]; N];
    for (i, row) in rows.iter_mut().enumerate() {
        *row = &x[i * columns..][..tile.len()];
    }
    // The compiler keeps a local array in registers.
    let mut registers = *sums;
    for (k, weights) in tile.iter().enumerate() {
        for (sum, row) in registers.iter_mut().zip(&rows) {
            let x = simd.splat_f32x8(row[k]);
            sum[0] = simd.mul_add_f32x8(weights[0], x, sum[0]);
            sum[1] = simd.mul_add_f32x8(weights[1], x, sum[1]);
        }
    }
    *sums = registers;
}
