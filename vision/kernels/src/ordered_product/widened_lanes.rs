//! Vectors whose 32-bit lanes hold packed values, converted to f32 for AVX2.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::arch::x86_64::__m256i;

use pulp::x86::V3;
use pulp::{cast, f32x8};

/// Converts two bf16 values per lane.
#[inline(always)]
pub(crate) fn widen_bf16(simd: V3, lanes: f32x8) -> [f32x8; 2] {
    let [first, second] = split_halves(simd, lanes);
    [cast(first), cast(second)]
}

/// Converts two f16 values per lane.
#[inline(always)]
pub(crate) fn widen_f16(simd: V3, lanes: f32x8) -> [f32x8; 2] {
    let [first, second] = split_halves(simd, lanes);
    [widen_upper_f16(simd, first), widen_upper_f16(simd, second)]
}

/// Converts four signed bytes per lane.
#[inline(always)]
pub(crate) fn widen_bytes(simd: V3, lanes: f32x8) -> [f32x8; 4] {
    let (avx, avx2) = (simd.avx, simd.avx2);
    let lanes: __m256i = cast(lanes);
    [
        cast(
            avx._mm256_cvtepi32_ps(
                avx2._mm256_srai_epi32::<24>(avx2._mm256_slli_epi32::<24>(lanes)),
            ),
        ),
        cast(
            avx._mm256_cvtepi32_ps(
                avx2._mm256_srai_epi32::<24>(avx2._mm256_slli_epi32::<16>(lanes)),
            ),
        ),
        cast(
            avx._mm256_cvtepi32_ps(
                avx2._mm256_srai_epi32::<24>(avx2._mm256_slli_epi32::<8>(lanes)),
            ),
        ),
        cast(avx._mm256_cvtepi32_ps(avx2._mm256_srai_epi32::<24>(lanes))),
    ]
}

/// Moves the lower, then the upper half of each lane to the upper half. The other half is zero.
#[inline(always)]
fn split_halves(simd: V3, lanes: f32x8) -> [__m256i; 2] {
    let (avx, avx2) = (simd.avx, simd.avx2);
    let lanes: __m256i = cast(lanes);
    let upper = avx._mm256_set1_epi32(0xFFFF_0000_u32.cast_signed());
    [avx2._mm256_slli_epi32::<16>(lanes), avx2._mm256_and_si256(lanes, upper)]
}

/// Converts the f16 value in the upper half of each lane.
#[inline(always)]
fn widen_upper_f16(simd: V3, lanes: __m256i) -> f32x8 {
    let (avx, avx2) = (simd.avx, simd.avx2);
    let sign = avx2._mm256_and_si256(lanes, avx._mm256_set1_epi32(i32::MIN));
    // The exponent and the mantissa at their places in f32. The exponent is too small by 112.
    let small = avx2._mm256_srli_epi32::<3>(avx2._mm256_andnot_si256(sign, lanes));
    let scale = avx._mm256_set1_ps(2f32.powi(112));
    let value = avx._mm256_mul_ps(cast(small), scale);
    // The largest exponent stands for infinity and NaN.
    let special = avx2._mm256_cmpgt_epi32(small, avx._mm256_set1_epi32(0x0F7F_FFFF));
    let exponent = avx2._mm256_and_si256(special, avx._mm256_set1_epi32(0x7F80_0000));
    let bits = avx2._mm256_or_si256(avx2._mm256_or_si256(sign, exponent), cast(value));
    cast(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    #[test]
    fn every_half_precision_value_keeps_its_bits() {
        let Some(simd) = V3::try_new() else {
            return;
        };
        for bits in (0..=u16::MAX).step_by(2) {
            let [first, second] = [bits, bits | 1].map(u32::from);
            let lanes: f32x8 = cast([second << 16 | first; 8]);
            let values = |widened: [f32x8; 2]| widened.map(|values| cast::<_, [f32; 8]>(values)[5]);
            let pairs = [
                (
                    values(widen_f16(simd, lanes)),
                    [bits, bits | 1].map(|x| f16::from_bits(x).to_f32()),
                ),
                (
                    values(widen_bf16(simd, lanes)),
                    [bits, bits | 1].map(|x| bf16::from_bits(x).to_f32()),
                ),
            ];
            for (got, want) in pairs {
                for (got, want) in got.into_iter().zip(want) {
                    assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan());
                }
            }
        }
    }

    #[test]
    fn every_signed_byte_keeps_its_value() {
        let Some(simd) = V3::try_new() else {
            return;
        };
        for byte in i8::MIN..=i8::MAX {
            let bytes = [byte, !byte, 1, -1];
            let lanes: f32x8 = cast([bytes; 8]);
            let got = widen_bytes(simd, lanes).map(|values| cast::<_, [f32; 8]>(values)[3]);
            assert_eq!(got.map(f32::to_bits), bytes.map(|x| f32::from(x).to_bits()));
        }
    }
}
