//! Rows of a weight as tiles.

use std::arch::x86_64::{__m512i, _mm512_permutex2var_epi32, _mm512_shuffle_i64x2};

use pulp::cast;

use super::tile::{TILE_ROWS, Tile};

/// Instructions for 128 columns, and partial sums of an output.
pub(super) const PASSES: usize = 4;
/// Columns whose partial sums begin with zero and are added to the output.
pub(super) const CHUNK_COLUMNS: usize = 1024;
/// Columns that one instruction of each pass multiplies.
pub(super) const BLOCK_COLUMNS: usize = TILE_ROWS * PASSES * 2;

/// Returns the number of blocks of a number of columns.
pub(super) fn blocks(columns: usize) -> usize {
    columns.div_ceil(BLOCK_COLUMNS)
}

/// Copies the columns of up to 16 weight rows to tiles, pass by pass: word `m` of row `r` of a tile is
/// the pair of pass `t` at the columns `2t + 8m` and `2t + 8m + 1` of its block. The rest is zero.
#[target_feature(enable = "avx512f")]
pub(super) fn pack_weights<'a>(rows: impl Iterator<Item = &'a [u16]>, tiles: &mut [Tile]) {
    let count = tiles.len() / PASSES;
    let mut filled = 0;
    for (r, row) in rows.enumerate().take(TILE_ROWS) {
        let (whole, rest) = row.as_chunks::<BLOCK_COLUMNS>();
        let mut last = [0; BLOCK_COLUMNS];
        last[..rest.len()].copy_from_slice(rest);
        let last = (!rest.is_empty()).then_some(&last);
        for (block, values) in whole.iter().chain(last).enumerate().take(count) {
            for (pass, words) in split_passes(values).into_iter().enumerate() {
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
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn split_passes(values: &[u16; BLOCK_COLUMNS]) -> [[u32; TILE_ROWS]; PASSES] {
    let words: [__m512i; PASSES] = cast(*values);
    // Every fourth word of two registers: eight for a pass, then eight for the next.
    let places = |pass: u32| {
        cast(std::array::from_fn::<u32, TILE_ROWS, _>(|i| i as u32 % 8 * 4 + i as u32 / 8 + pass))
    };
    let (even, odd) = (places(0), places(2));
    let first = [even, odd].map(|places| _mm512_permutex2var_epi32(words[0], places, words[1]));
    let second = [even, odd].map(|places| _mm512_permutex2var_epi32(words[2], places, words[3]));
    let low = |i: usize| _mm512_shuffle_i64x2::<0b01_00_01_00>(first[i], second[i]);
    let high = |i: usize| _mm512_shuffle_i64x2::<0b11_10_11_10>(first[i], second[i]);
    cast([low(0), high(0), low(1), high(1)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(unsafe_code, reason = "calls a function for a processor feature")]
    fn passes_have_their_pairs() {
        if !is_x86_feature_detected!("avx512f") {
            return;
        }
        let values = std::array::from_fn(|i| i as u16);
        // SAFETY: The processor has AVX-512.
        let passes = unsafe { split_passes(&values) };
        for (pass, words) in passes.into_iter().enumerate() {
            for (m, word) in words.into_iter().enumerate() {
                let first = (2 * pass + 8 * m) as u32;
                assert_eq!(word, first | (first + 1) << 16);
            }
        }
    }
}
