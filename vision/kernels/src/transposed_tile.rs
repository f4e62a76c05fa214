//! A tile of a weight matrix, transposed in registers for AVX2.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::arch::x86_64::__m256;

use pulp::x86::V3;
use pulp::{cast, f32x8};

use crate::weight_rows::WeightRows;

/// Rows of the weight in a tile: the outputs that are computed together.
pub(crate) const TILE_ROWS: usize = 16;
/// Values of each row in a tile. The tile takes 4 kB.
pub(crate) const TILE_DEPTH: usize = 64;
/// Values of a vector register.
const LANES: usize = 8;

/// The outputs of a tile, for one input row or one value of the inner dimension.
pub(crate) type TileRow = [f32x8; TILE_ROWS / LANES];

/// A part of the inner dimension of a matrix with `columns` columns.
#[derive(Clone, Copy)]
pub(crate) struct TileRange {
    /// First row of the weight.
    pub(crate) row: usize,
    /// Number of rows of the weight.
    pub(crate) rows: usize,
    /// Number of columns of the weight.
    pub(crate) columns: usize,
    /// First column.
    pub(crate) start: usize,
    /// Number of columns in the tile, at most [`TILE_DEPTH`].
    pub(crate) len: usize,
}

/// Reads and transposes a tile: element `k` has the values of column `start + k`. Rows after the
/// last one are zero.
#[inline(always)]
pub(crate) fn load_tile(
    simd: V3,
    weight: &WeightRows,
    range: TileRange,
    tile: &mut [TileRow; TILE_DEPTH],
) {
    let TileRange { row, rows, columns, start, len } = range;
    let mut buffers = [[0.; TILE_DEPTH]; LANES];
    for half in 0..TILE_ROWS / LANES {
        let mut first = row + half * LANES;
        let values = buffers.each_mut().map(|buffer| {
            let is_row = first < rows;
            let position = first * columns + start;
            first += 1;
            if is_row {
                weight.read(position, &mut buffer[..len])
            } else {
                buffer.fill(0.);
                &buffer[..len]
            }
        });
        for k in (0..len).step_by(LANES) {
            let block = transpose(simd, values.map(|values| load(&values[k..])));
            for (column, block) in tile[k..].iter_mut().zip(block) {
                column[half] = block;
            }
        }
    }
}

/// Loads up to eight values. Missing ones are zero.
#[inline(always)]
fn load(values: &[f32]) -> f32x8 {
    if let Some(values) = values.first_chunk::<LANES>() {
        return cast(*values);
    }
    let mut padded = [0.; LANES];
    padded[..values.len()].copy_from_slice(values);
    cast(padded)
}

/// Transposes eight vectors of eight values.
#[inline(always)]
fn transpose(simd: V3, rows: [f32x8; LANES]) -> [f32x8; LANES] {
    let avx = simd.avx;
    let r: [__m256; LANES] = rows.map(cast);
    // Pairs of two rows, then groups of four rows, then both halves of the registers.
    let pairs = [
        avx._mm256_unpacklo_ps(r[0], r[1]),
        avx._mm256_unpackhi_ps(r[0], r[1]),
        avx._mm256_unpacklo_ps(r[2], r[3]),
        avx._mm256_unpackhi_ps(r[2], r[3]),
        avx._mm256_unpacklo_ps(r[4], r[5]),
        avx._mm256_unpackhi_ps(r[4], r[5]),
        avx._mm256_unpacklo_ps(r[6], r[7]),
        avx._mm256_unpackhi_ps(r[6], r[7]),
    ];
    let low = |a: usize, b: usize| avx._mm256_shuffle_ps::<0x44>(pairs[a], pairs[b]);
    let high = |a: usize, b: usize| avx._mm256_shuffle_ps::<0xEE>(pairs[a], pairs[b]);
    let upper = [low(0, 2), high(0, 2), low(1, 3), high(1, 3)];
    let lower = [low(4, 6), high(4, 6), low(5, 7), high(5, 7)];
    let first = |i: usize| avx._mm256_permute2f128_ps::<0x20>(upper[i], lower[i]);
    let second = |i: usize| avx._mm256_permute2f128_ps::<0x31>(upper[i], lower[i]);
    [first(0), first(1), first(2), first(3), second(0), second(1), second(2), second(3)].map(cast)
}
