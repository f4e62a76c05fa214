//! Transposition of tiles.

use std::arch::x86_64::{
    __m512i, _mm512_shuffle_i32x4, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};

use pulp::cast;

use super::tile::{TILE_ROWS, Tile};

/// Swaps the rows and the columns of a tile.
#[target_feature(enable = "avx512f")]
pub(super) fn transpose(tile: &Tile) -> Tile {
    let rows: [__m512i; TILE_ROWS] = cast(tile.0);
    // Words of two neighbouring rows, then of four. Each quarter of a register has four columns.
    let mut quads = rows;
    for i in (0..TILE_ROWS).step_by(4) {
        let [a, b, c, d] = [rows[i], rows[i + 1], rows[i + 2], rows[i + 3]];
        let [ab_low, ab_high] = [_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)];
        let [cd_low, cd_high] = [_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d)];
        quads[i] = _mm512_unpacklo_epi64(ab_low, cd_low);
        quads[i + 1] = _mm512_unpackhi_epi64(ab_low, cd_low);
        quads[i + 2] = _mm512_unpacklo_epi64(ab_high, cd_high);
        quads[i + 3] = _mm512_unpackhi_epi64(ab_high, cd_high);
    }
    // Register `i` of each group of four has columns `i`, `i + 4`, `i + 8` and `i + 12`.
    let mut columns = rows;
    for i in 0..4 {
        let [a, b, c, d] = [quads[i], quads[i + 4], quads[i + 8], quads[i + 12]];
        let ab_even = _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b);
        let ab_odd = _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b);
        let cd_even = _mm512_shuffle_i32x4::<0b10_00_10_00>(c, d);
        let cd_odd = _mm512_shuffle_i32x4::<0b11_01_11_01>(c, d);
        columns[i] = _mm512_shuffle_i32x4::<0b10_00_10_00>(ab_even, cd_even);
        columns[i + 4] = _mm512_shuffle_i32x4::<0b10_00_10_00>(ab_odd, cd_odd);
        columns[i + 8] = _mm512_shuffle_i32x4::<0b11_01_11_01>(ab_even, cd_even);
        columns[i + 12] = _mm512_shuffle_i32x4::<0b11_01_11_01>(ab_odd, cd_odd);
    }
    Tile(cast(columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(unsafe_code, reason = "calls a function for a processor feature")]
    fn rows_become_columns() {
        if !is_x86_feature_detected!("avx512f") {
            return;
        }
        let mut tile = Tile::ZERO;
        for (i, word) in tile.0.as_flattened_mut().iter_mut().enumerate() {
            *word = i as u32;
        }
        // SAFETY: The processor has AVX-512.
        let transposed = unsafe { transpose(&tile) };
        for row in 0..TILE_ROWS {
            for column in 0..TILE_ROWS {
                assert_eq!(transposed.0[column][row], tile.0[row][column]);
            }
        }
    }
}
