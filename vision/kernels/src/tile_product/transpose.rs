//! Transposition of tiles.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::arch::x86_64::__m512i;

use pulp::cast;
use pulp::core_arch::x86::Avx512f;
use pulp::x86::V4;

use super::tile_words::{TILE_ROWS, TileWords};

/// Swaps the rows and the columns of a tile.
#[inline(always)]
pub(super) fn transpose(simd: V4, tile: &TileWords) -> TileWords {
    let simd = simd.avx512f;
    let rows: [__m512i; TILE_ROWS] = cast(tile.0);
    // Words of two neighbouring rows, then of four. Each quarter of a register has four columns.
    let mut quads = rows;
    for i in (0..TILE_ROWS).step_by(4) {
        let [a, b, c, d] = [rows[i], rows[i + 1], rows[i + 2], rows[i + 3]];
        let [ab_low, ab_high] =
            [simd._mm512_unpacklo_epi32(a, b), simd._mm512_unpackhi_epi32(a, b)];
        let [cd_low, cd_high] =
            [simd._mm512_unpacklo_epi32(c, d), simd._mm512_unpackhi_epi32(c, d)];
        quads[i] = simd._mm512_unpacklo_epi64(ab_low, cd_low);
        quads[i + 1] = simd._mm512_unpackhi_epi64(ab_low, cd_low);
        quads[i + 2] = simd._mm512_unpacklo_epi64(ab_high, cd_high);
        quads[i + 3] = simd._mm512_unpackhi_epi64(ab_high, cd_high);
    }
    // Register `i` of each group of four has columns `i`, `i + 4`, `i + 8` and `i + 12`.
    let mut columns = rows;
    for i in 0..4 {
        let ab = split_quarters(simd, quads[i], quads[i + 4]);
        let cd = split_quarters(simd, quads[i + 8], quads[i + 12]);
        [columns[i], columns[i + 8]] = split_quarters(simd, ab[0], cd[0]);
        [columns[i + 4], columns[i + 12]] = split_quarters(simd, ab[1], cd[1]);
    }
    TileWords(cast(columns))
}

/// Returns the even quarters of two registers, and the odd ones.
#[inline(always)]
fn split_quarters(simd: Avx512f, a: __m512i, b: __m512i) -> [__m512i; 2] {
    let even = simd._mm512_shuffle_i32x4::<0b10_00_10_00>(a, b);
    let odd = simd._mm512_shuffle_i32x4::<0b11_01_11_01>(a, b);
    [even, odd]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns() {
        let Some(simd) = V4::try_new() else {
            return;
        };
        let mut tile = TileWords::ZERO;
        for (i, word) in tile.0.as_flattened_mut().iter_mut().enumerate() {
            *word = i as u32;
        }
        let transposed = transpose(simd, &tile);
        for row in 0..TILE_ROWS {
            for column in 0..TILE_ROWS {
                assert_eq!(transposed.0[column][row], tile.0[row][column]);
            }
        }
    }
}
