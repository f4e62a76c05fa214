//! Functions with the instructions for pairs.

use std::arch::x86_64::{
    __m512bh, __m512i, _mm512_broadcast_i32x8, _mm512_dpbf16_ps, _mm512_permutexvar_epi16,
};
use std::ops::Range;

use pulp::x86::V4;
use pulp::{cast, f32x16};

use super::input::InputPairs;
use super::sizes::{BLOCK_COLUMNS, CHAIN_BLOCKS, WEIGHT_ROWS};
use super::weights::{PAIR_PLACES, WeightPairs};
use crate::row_product::{InputLanes as _, add_lanes, prefetch, prefetch_bytes};

/// Copies a chunk of some weight rows to blocks, and prefetches what begins `ahead` bytes later.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub(super) fn pack_weights(rows: &[&[u16]; WEIGHT_ROWS], blocks: &mut [WeightPairs], ahead: usize) {
    let places: __m512i = cast(PAIR_PLACES);
    for pair in 0..WEIGHT_ROWS / 2 {
        let [first, second] = [rows[pair], rows[pair + WEIGHT_ROWS / 2]];
        let (first, first_rest) = first.as_chunks::<BLOCK_COLUMNS>();
        let (second, second_rest) = second.as_chunks::<BLOCK_COLUMNS>();
        for ((block, first), second) in blocks.iter_mut().zip(first).zip(second) {
            prefetch(first, ahead);
            prefetch(second, ahead);
            block.0[pair] = cast(_mm512_permutexvar_epi16(places, cast([*first, *second])));
        }
        if let Some(block) = blocks.get_mut(first.len()) {
            let mut last = [[0u16; BLOCK_COLUMNS]; 2];
            last[0][..first_rest.len()].copy_from_slice(first_rest);
            last[1][..second_rest.len()].copy_from_slice(second_rest);
            block.0[pair] = cast(_mm512_permutexvar_epi16(places, cast(last)));
        }
    }
}

/// Adds the products of `R` input rows with packed weight rows to the outputs of each input row at
/// `places`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub(super) fn multiply_packed<const R: usize>(
    simd: V4,
    x: &[InputPairs],
    weights: &[WeightPairs],
    outputs: &mut [&mut [f32]],
    places: Range<usize>,
) {
    let mut pairs = [[simd.splat_f32x16(0.); WEIGHT_ROWS / 4]; R];
    for (x, weights) in x.chunks(CHAIN_BLOCKS).zip(weights.chunks(CHAIN_BLOCKS)) {
        let mut sums = [[simd.splat_f32x16(0.); WEIGHT_ROWS / 2]; R];
        for (x, weights) in x.iter().zip(weights) {
            add_block(&mut sums, x, &cast(weights.0));
        }
        add_neighbours(simd, &mut pairs, &sums);
    }
    add_totals(simd, &pairs, outputs, places);
}

/// A chunk of some weight rows in memory.
#[derive(Clone, Copy)]
pub(super) struct StoredRows<'a> {
    pub(super) rows: &'a [&'a [u16]; WEIGHT_ROWS],
    /// Bytes from the first weight to what is prefetched, if anything is.
    pub(super) ahead: Option<usize>,
}

/// Adds the products of `R` input rows with weights in memory to the outputs of each input row at
/// `places`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub(super) fn multiply_stored<const R: usize>(
    simd: V4,
    x: &[InputPairs],
    weights: StoredRows,
    outputs: &mut [&mut [f32]],
    places: Range<usize>,
) {
    let StoredRows { rows, ahead } = weights;
    let order: __m512i = cast(PAIR_PLACES);
    let parts = rows.map(|row| row.as_chunks::<BLOCK_COLUMNS>());
    let blocks = parts[0].0.len();
    let rows = parts.map(|(row, _)| &row[..blocks]);
    let mut last = [[0u16; BLOCK_COLUMNS]; WEIGHT_ROWS];
    for (last, (_, rest)) in last.iter_mut().zip(parts) {
        last[..rest.len()].copy_from_slice(rest);
    }
    let mut pairs = [[simd.splat_f32x16(0.); WEIGHT_ROWS / 4]; R];
    for (chain, x) in x.chunks(CHAIN_BLOCKS).enumerate() {
        let mut sums = [[simd.splat_f32x16(0.); WEIGHT_ROWS / 2]; R];
        for (i, x) in x.iter().enumerate() {
            let block = chain * CHAIN_BLOCKS + i;
            if let (Some(first), Some(ahead)) = (rows[0].get(block), ahead) {
                // The next rows are fetched in the order of their addresses.
                let size = size_of_val(first);
                let ahead = ahead + block * size * (WEIGHT_ROWS - 1);
                prefetch_bytes(first, ahead, size * WEIGHT_ROWS);
            }
            let mut weights = [cast([0u32; 16]); WEIGHT_ROWS / 2];
            for (pair, weights) in weights.iter_mut().enumerate() {
                let second = pair + WEIGHT_ROWS / 2;
                let values = if block < blocks {
                    [rows[pair][block], rows[second][block]]
                } else {
                    [last[pair], last[second]]
                };
                *weights = _mm512_permutexvar_epi16(order, cast(values));
            }
            add_block(&mut sums, x, &weights);
        }
        add_neighbours(simd, &mut pairs, &sums);
    }
    add_totals(simd, &pairs, outputs, places);
}

/// Adds the products of a block to the sums.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
fn add_block<const R: usize>(
    sums: &mut [[f32x16; WEIGHT_ROWS / 2]; R],
    x: &InputPairs,
    weights: &[__m512i; WEIGHT_ROWS / 2],
) {
    for (r, sums) in sums.iter_mut().enumerate() {
        let x = as_pairs(_mm512_broadcast_i32x8(cast(x.0[r])));
        for (sum, weights) in sums.iter_mut().zip(weights) {
            *sum = cast(_mm512_dpbf16_ps(cast(*sum), x, as_pairs(*weights)));
        }
    }
}

/// Adds the sums of neighbouring chains.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
fn add_neighbours<const R: usize>(
    simd: V4,
    pairs: &mut [[f32x16; WEIGHT_ROWS / 4]; R],
    sums: &[[f32x16; WEIGHT_ROWS / 2]; R],
) {
    for (pairs, sums) in pairs.iter_mut().zip(sums) {
        for (pair, sums) in pairs.iter_mut().zip(sums.as_chunks::<2>().0) {
            *pair = simd.add_f32x16(*pair, simd.add_neighbours(sums[0], sums[1]));
        }
    }
}

/// Adds the dot products to the outputs of each input row at `places`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
fn add_totals<const R: usize>(
    simd: V4,
    pairs: &[[f32x16; WEIGHT_ROWS / 4]; R],
    outputs: &mut [&mut [f32]],
    places: Range<usize>,
) {
    for (pairs, outputs) in pairs.iter().zip(outputs) {
        let totals: [f32; WEIGHT_ROWS] = cast(add_lanes(simd, *pairs));
        for (output, total) in outputs[places.clone()].iter_mut().zip(totals) {
            *output += total;
        }
    }
}

/// Returns the bits of a register as pairs.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
fn as_pairs(bits: __m512i) -> __m512bh {
    // SAFETY: Both types have 64 bytes, and all of their values are valid.
    #[expect(unsafe_code, reason = "the standard library has no conversion")]
    unsafe {
        std::mem::transmute::<__m512i, __m512bh>(bits)
    }
}
