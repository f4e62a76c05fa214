//! Rows of a weight as tiles.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::arch::x86_64::__m512i;

use pulp::cast;
use pulp::x86::V4;

use super::portable::PAIR_SUMS;
use super::tile_words::{TILE_ROWS, TileWords};
pub(super) use crate::row_product::CHUNK_COLUMNS;

/// Instructions for 128 columns, and partial sums of an output.
pub(super) const PASSES: usize = PAIR_SUMS;
/// Columns that one instruction of each pass multiplies.
pub(super) const BLOCK_COLUMNS: usize = TILE_ROWS * PASSES * 2;

/// Returns the number of blocks of a number of columns.
#[inline(always)]
pub(super) fn blocks(columns: usize) -> usize {
    columns.div_ceil(BLOCK_COLUMNS)
}

/// Copies the columns of up to 16 weight rows to tiles, pass by pass: word `m` of row `r` of a tile is
/// the pair of pass `t` at the columns `2t + 8m` and `2t + 8m + 1` of its block. The rest is zero.
#[inline(always)]
pub(super) fn pack_weights<'a>(
    simd: V4,
    rows: impl Iterator<Item = &'a [u16]>,
    tiles: &mut [TileWords],
) {
    let count = tiles.len() / PASSES;
    let mut filled = 0;
    for (r, row) in rows.enumerate().take(TILE_ROWS) {
        let (whole, rest) = row.as_chunks::<BLOCK_COLUMNS>();
        let mut last = [0; BLOCK_COLUMNS];
        last[..rest.len()].copy_from_slice(rest);
        let last = (!rest.is_empty()).then_some(&last);
        for (block, values) in whole.iter().chain(last).enumerate().take(count) {
            for (pass, words) in split_passes(simd, values).into_iter().enumerate() {
                tiles[pass * count + block].0[r] = words;
            }
        }
        filled = r + 1;
    }
    for tile in tiles {
        tile.0[filled..].fill([0; TILE_ROWS]);
    }
}

/// Returns the pairs of each pass.
#[inline(always)]
pub(super) fn split_passes(simd: V4, values: &[u16; BLOCK_COLUMNS]) -> [[u32; TILE_ROWS]; PASSES] {
    /// Every fourth word of two registers: eight for the first pass, then eight for the second.
    const PLACES: [u32; TILE_ROWS] = [0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29];
    let simd = simd.avx512f;
    let words: [__m512i; PASSES] = cast(*values);
    let places = cast(PLACES);
    let later_places = simd._mm512_add_epi32(places, simd._mm512_set1_epi32(2));
    // The pairs of the first eight places of two passes, and of the last eight places.
    let first = simd._mm512_permutex2var_epi32(words[0], places, words[1]);
    let last = simd._mm512_permutex2var_epi32(words[2], places, words[3]);
    let later_first = simd._mm512_permutex2var_epi32(words[0], later_places, words[1]);
    let later_last = simd._mm512_permutex2var_epi32(words[2], later_places, words[3]);
    cast([
        simd._mm512_shuffle_i64x2::<0b01_00_01_00>(first, last),
        simd._mm512_shuffle_i64x2::<0b11_10_11_10>(first, last),
        simd._mm512_shuffle_i64x2::<0b01_00_01_00>(later_first, later_last),
        simd._mm512_shuffle_i64x2::<0b11_10_11_10>(later_first, later_last),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_have_their_pairs() {
        let Some(simd) = V4::try_new() else {
            return;
        };
        let values = std::array::from_fn(|i| i as u16);
        for (pass, words) in split_passes(simd, &values).into_iter().enumerate() {
            for (m, word) in words.into_iter().enumerate() {
                let first = (2 * pass + 8 * m) as u32;
                assert_eq!(word, first | (first + 1) << 16);
            }
        }
    }
}
