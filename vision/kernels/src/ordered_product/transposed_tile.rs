//! A tile of a weight matrix, transposed in registers for AVX2.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::arch::x86_64::__m256;

use pulp::bytemuck::Pod;
use pulp::x86::V3;
use pulp::{cast, f32x8};

use super::weight_rows::{Q8_BYTES, Q8_VALUES, WeightRows};
use super::widened_lanes::{widen_bf16, widen_bytes, widen_f16};

/// Values of each row in a tile, a multiple of 32. The tile takes 8 kB.
pub(crate) const TILE_DEPTH: usize = 128;
/// Rows of the weight in a tile: the outputs that are computed together.
pub(crate) const TILE_ROWS: usize = 16;
/// 32-bit values of a vector register.
const LANES: usize = 8;
/// 16-bit values of a vector register.
const HALF_LANES: usize = 16;

/// The outputs of a tile, for one input row or one value of the inner dimension.
pub(crate) type TileRow = [f32x8; TILE_ROWS / LANES];

/// The values of a tile, one column of the weight after the other.
pub(crate) type Tile = [TileRow; TILE_DEPTH];

/// A part of the inner dimension of a matrix.
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

impl TileRange {
    /// Returns the positions of the first values of the lower (0) or upper (1) eight rows. The last
    /// row of the weight stands for the rows after it.
    #[inline(always)]
    fn positions(&self, half: usize) -> [usize; LANES] {
        let mut positions = [0; LANES];
        for (i, position) in positions.iter_mut().enumerate() {
            let row = (self.row + half * LANES + i).min(self.rows - 1);
            *position = row * self.columns + self.start;
        }
        positions
    }

    /// Selects the lower or upper eight rows.
    #[inline(always)]
    fn select_rows<'a, T>(&self, values: &'a [T], half: usize) -> [&'a [T]; LANES] {
        let mut rows = [&values[..0]; LANES];
        for (row, position) in rows.iter_mut().zip(self.positions(half)) {
            *row = &values[position..][..self.len];
        }
        rows
    }
}

/// Reads and transposes a tile. Values after its last column are undefined.
#[inline(always)]
pub(crate) fn load_tile(simd: V3, weight: &WeightRows<'_>, range: &TileRange, tile: &mut Tile) {
    for half in 0..TILE_ROWS / LANES {
        match *weight {
            WeightRows::F32(values) => {
                load_f32(simd, &range.select_rows(values, half), half, tile);
            }
            WeightRows::Bf16(bits) => {
                load_16_bits::<false>(simd, &range.select_rows(bits, half), half, tile);
            }
            WeightRows::F16(bits) => {
                load_16_bits::<true>(simd, &range.select_rows(bits, half), half, tile);
            }
            WeightRows::Q8(blocks) => load_q8(simd, blocks, range, half, tile),
        }
    }
}

/// Transposes eight rows of f32 values.
#[inline(always)]
fn load_f32(simd: V3, rows: &[&[f32]; LANES], half: usize, tile: &mut Tile) {
    for k in (0..rows[0].len()).step_by(LANES) {
        let block = transpose(simd, load_vectors::<f32, LANES>(rows, k));
        for (column, values) in tile[k..].iter_mut().zip(&block) {
            column[half] = *values;
        }
    }
}

/// Transposes eight rows of f16 or bf16 values, two columns per lane.
#[inline(always)]
fn load_16_bits<const IS_F16: bool>(
    simd: V3,
    rows: &[&[u16]; LANES],
    half: usize,
    tile: &mut Tile,
) {
    for k in (0..rows[0].len()).step_by(HALF_LANES) {
        let block = transpose(simd, load_vectors::<u16, HALF_LANES>(rows, k));
        for (columns, lanes) in tile[k..].chunks_exact_mut(2).zip(&block) {
            let values = if IS_F16 { widen_f16(simd, *lanes) } else { widen_bf16(simd, *lanes) };
            columns[0][half] = values[0];
            columns[1][half] = values[1];
        }
    }
}

/// Transposes eight rows of `Q8_0` blocks, four columns per lane.
#[inline(always)]
fn load_q8(simd: V3, blocks: &[[u8; Q8_BYTES]], range: &TileRange, half: usize, tile: &mut Tile) {
    let positions = range.positions(half);
    for k in (0..range.len).step_by(Q8_VALUES) {
        let mut scales = [0u32; LANES];
        let mut rows = [cast([0f32; LANES]); LANES];
        for ((scale, row), position) in scales.iter_mut().zip(&mut rows).zip(positions) {
            let [low, high, values @ ..] = &blocks[(position + k) / Q8_VALUES];
            *scale = u32::from(u16::from_le_bytes([*low, *high]));
            *row = cast(*values);
        }
        let [scales, _] = widen_f16(simd, cast(scales));
        let block = transpose(simd, rows);
        for (columns, lanes) in tile[k..].chunks_exact_mut(4).zip(&block) {
            let values = widen_bytes(simd, *lanes);
            columns[0][half] = simd.mul_f32x8(values[0], scales);
            columns[1][half] = simd.mul_f32x8(values[1], scales);
            columns[2][half] = simd.mul_f32x8(values[2], scales);
            columns[3][half] = simd.mul_f32x8(values[3], scales);
        }
    }
}

/// Loads `N` values of each row from column `k` as a vector. Values after the last one are zero.
#[inline(always)]
fn load_vectors<T: Pod, const N: usize>(rows: &[&[T]; LANES], k: usize) -> [f32x8; LANES]
where
    [T; N]: Pod,
{
    let mut vectors = [cast([0f32; LANES]); LANES];
    for (vector, row) in vectors.iter_mut().zip(rows) {
        let row = &row[k..];
        *vector = if let Some(values) = row.first_chunk::<N>() {
            cast(*values)
        } else {
            let mut padded = [T::zeroed(); N];
            padded[..row.len()].copy_from_slice(row);
            cast(padded)
        };
    }
    vectors
}

/// Transposes eight vectors of eight lanes.
#[inline(always)]
fn transpose(simd: V3, rows: [f32x8; LANES]) -> [f32x8; LANES] {
    let avx = simd.avx;
    let r: [__m256; LANES] = cast(rows);
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
    let groups = [
        avx._mm256_shuffle_ps::<0x44>(pairs[0], pairs[2]),
        avx._mm256_shuffle_ps::<0xEE>(pairs[0], pairs[2]),
        avx._mm256_shuffle_ps::<0x44>(pairs[1], pairs[3]),
        avx._mm256_shuffle_ps::<0xEE>(pairs[1], pairs[3]),
        avx._mm256_shuffle_ps::<0x44>(pairs[4], pairs[6]),
        avx._mm256_shuffle_ps::<0xEE>(pairs[4], pairs[6]),
        avx._mm256_shuffle_ps::<0x44>(pairs[5], pairs[7]),
        avx._mm256_shuffle_ps::<0xEE>(pairs[5], pairs[7]),
    ];
    cast([
        avx._mm256_permute2f128_ps::<0x20>(groups[0], groups[4]),
        avx._mm256_permute2f128_ps::<0x20>(groups[1], groups[5]),
        avx._mm256_permute2f128_ps::<0x20>(groups[2], groups[6]),
        avx._mm256_permute2f128_ps::<0x20>(groups[3], groups[7]),
        avx._mm256_permute2f128_ps::<0x31>(groups[0], groups[4]),
        avx._mm256_permute2f128_ps::<0x31>(groups[1], groups[5]),
        avx._mm256_permute2f128_ps::<0x31>(groups[2], groups[6]),
        avx._mm256_permute2f128_ps::<0x31>(groups[3], groups[7]),
    ])
}
