//! Rounding of input rows to 8 bits with AVX2.

use std::arch::x86_64::{
    __m256, __m256i, _mm256_add_ps, _mm256_andnot_ps, _mm256_castps_si256, _mm256_fmadd_ps,
    _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_max_ps, _mm256_mul_ps, _mm256_packs_epi16,
    _mm256_packs_epi32, _mm256_permutevar8x32_epi32, _mm256_set1_epi8, _mm256_set1_epi16,
    _mm256_set1_epi32, _mm256_set1_ps, _mm256_setr_epi32, _mm256_setzero_ps, _mm256_sub_epi32,
};

use pulp::cast;

use super::panel_rows::BLOCK_VALUES;
use super::row_rounding::{LARGEST, ROUND, RoundedBlock, RowRounding, SMALLEST};

/// Rounds rows. The results equal those of [`round_block`](super::row_rounding::round_block), except for the
/// bytes of blocks with values that are not finite.
#[target_feature(enable = "avx2,fma")]
pub(super) fn round_rows(rounding: RowRounding<'_>) {
    // A function with target features does not implement `Fn`. A closure does, and inherits the features.
    rounding.run(|values| round_block(values));
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn round_block(values: &[f32; BLOCK_VALUES]) -> RoundedBlock {
    let values: [__m256; 4] = cast(*values);
    let sign = _mm256_set1_ps(-0.);
    let mut sizes = _mm256_setzero_ps();
    let mut check = _mm256_setzero_ps();
    for values in values {
        sizes = _mm256_max_ps(sizes, _mm256_andnot_ps(sign, values));
        // Zero, or NaN for a value that is not finite.
        check = _mm256_add_ps(check, _mm256_mul_ps(values, _mm256_setzero_ps()));
    }
    let (sizes, check): ([f32; 8], [f32; 8]) = (cast(sizes), cast(check));
    let largest = sizes.into_iter().fold(0., f32::max);
    let factor = if largest > SMALLEST { LARGEST / largest } else { 0. };
    let (factor, round) = (_mm256_set1_ps(factor), _mm256_set1_ps(ROUND));
    // The bits of the sum, minus those of `ROUND`, are the rounded value.
    let first_bits = _mm256_set1_epi32(ROUND.to_bits().cast_signed());
    let mut words = [first_bits; 4];
    for (words, values) in words.iter_mut().zip(values) {
        let rounded = _mm256_castps_si256(_mm256_fmadd_ps(values, factor, round));
        *words = _mm256_sub_epi32(rounded, first_bits);
    }
    let bytes = to_bytes(words);
    let pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
    let sums: [i32; 8] = cast(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    RoundedBlock {
        quads: cast(bytes),
        scale: largest / LARGEST + check.into_iter().sum::<f32>(),
        sum: sums.into_iter().sum(),
    }
}

/// Converts words to signed bytes, with saturation.
#[target_feature(enable = "avx2")]
#[inline]
fn to_bytes(words: [__m256i; 4]) -> __m256i {
    let low = _mm256_packs_epi32(words[0], words[1]);
    let high = _mm256_packs_epi32(words[2], words[3]);
    let quads = _mm256_packs_epi16(low, high);
    // The instructions pack each half of a register separately. This restores the order of the quads.
    _mm256_permutevar8x32_epi32(quads, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
}
