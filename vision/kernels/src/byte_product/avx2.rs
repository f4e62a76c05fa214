//! The kernel for AVX2, which multiplies pairs of bytes to 16-bit sums.

use std::arch::x86_64::{
    __m256i, _mm256_abs_epi8, _mm256_add_epi16, _mm256_add_epi32, _mm256_and_si256,
    _mm256_cvtepi32_ps, _mm256_cvtepu8_epi32, _mm256_cvtph_ps, _mm256_fmadd_ps, _mm256_fnmadd_ps,
    _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_mul_ps, _mm256_set1_epi8, _mm256_set1_epi16,
    _mm256_set1_epi32, _mm256_set1_ps, _mm256_setzero_ps, _mm256_setzero_si256, _mm256_sign_epi8,
    _mm256_srli_epi16,
};

use pulp::cast;

use super::byte_panels::{ByteBlock, BytePanel};
use super::byte_rows::ByteRows;
use super::kernel::{Kernel, PanelProducts};
use super::nibble_panels::{NibblePanel, PAIRS, PARTS, factors, pair, scales};
use super::rounding_avx2::round_rows;
use super::row_rounding::RowRounding;

/// The processor has AVX2, FMA and F16C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Returns the kernel if the processor has the instructions.
    pub(super) fn try_new() -> Option<Self> {
        let found = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        found.then_some(Self(()))
    }
}

impl Kernel for Avx2 {
    const MAX_ROWS: usize = 4;

    #[inline]
    #[expect(unsafe_code, reason = "takes less than half of the time of code without intrinsics")]
    fn round_rows(self, rounding: RowRounding<'_>) {
        // SAFETY: As in `multiply_bytes`.
        unsafe { round_rows(rounding) }
    }

    #[inline]
    #[expect(unsafe_code, reason = "one row takes a third of the time of that in f32")]
    fn multiply_bytes<const R: usize>(
        self,
        x: &ByteRows,
        panel: BytePanel<'_>,
    ) -> [PanelProducts; R] {
        // SAFETY: `try_new` is the only way to a value of this type. It has found the features.
        unsafe { multiply_bytes(x, panel) }
    }

    #[inline]
    #[expect(unsafe_code, reason = "one row takes a third of the time of that in f32")]
    fn multiply_nibbles<const R: usize>(
        self,
        x: &ByteRows,
        panel: NibblePanel<'_>,
    ) -> [PanelProducts; R] {
        // SAFETY: As in `multiply_bytes`.
        unsafe { multiply_nibbles(x, panel) }
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
fn multiply_bytes<const R: usize>(x: &ByteRows, panel: BytePanel<'_>) -> [PanelProducts; R] {
    // The two halves of the rows of a panel.
    let mut sums = [[_mm256_setzero_ps(); 2]; R];
    let ones = _mm256_set1_epi16(1);
    for (i, words) in x.blocks::<R>().enumerate() {
        let ByteBlock { scales, quads } = panel.block(i);
        let mut products = [[_mm256_setzero_si256(); 2]; R];
        for (quad, weights) in quads.iter().enumerate() {
            let weights: [__m256i; 2] = cast(*weights);
            // The instruction takes an unsigned and a signed factor: the weight gives its sign away.
            // No sum of two products leaves 16 bits, as the input has no −128.
            let sizes = [_mm256_abs_epi8(weights[0]), _mm256_abs_epi8(weights[1])];
            for (products, x) in products.iter_mut().zip(words.quads(quad)) {
                let x = _mm256_set1_epi32(x);
                for half in 0..2 {
                    let signed = _mm256_sign_epi8(x, weights[half]);
                    let pairs = _mm256_maddubs_epi16(sizes[half], signed);
                    let quads = _mm256_madd_epi16(pairs, ones);
                    products[half] = _mm256_add_epi32(products[half], quads);
                }
            }
        }
        let scales: [[u8; 16]; 2] = cast(*scales);
        for half in 0..2 {
            let scales = _mm256_cvtph_ps(cast(scales[half]));
            for (r, sums) in sums.iter_mut().enumerate() {
                let product = _mm256_cvtepi32_ps(products[r][half]);
                let scaled = _mm256_mul_ps(product, _mm256_set1_ps(words.scale(r)));
                sums[half] = _mm256_fmadd_ps(scaled, scales, sums[half]);
            }
        }
    }
    sums.map(cast)
}

#[target_feature(enable = "avx2,fma,f16c")]
fn multiply_nibbles<const R: usize>(x: &ByteRows, panel: NibblePanel<'_>) -> [PanelProducts; R] {
    let mut sums = [[_mm256_setzero_ps(); 2]; R];
    let (low, ones) = (_mm256_set1_epi8(15), _mm256_set1_epi16(1));
    for (i, words) in x.blocks::<R>().enumerate().take(panel.blocks.len() * PARTS) {
        let (block, part) = (&panel.blocks[i / PARTS], i % PARTS);
        // Sums of 16 products of at most 15 · 127 fit into 16 bits.
        let mut products = [[_mm256_setzero_si256(); 2]; R];
        for quads in 0..PAIRS {
            let pairs: [__m256i; 2] = cast(*pair(block, part, quads));
            for quad in 0..2 {
                let mut weights = pairs;
                for weights in &mut weights {
                    if quad == 1 {
                        *weights = _mm256_srli_epi16::<4>(*weights);
                    }
                    *weights = _mm256_and_si256(*weights, low);
                }
                for (products, x) in products.iter_mut().zip(words.quads(2 * quads + quad)) {
                    let x = _mm256_set1_epi32(x);
                    for half in 0..2 {
                        let product = _mm256_maddubs_epi16(weights[half], x);
                        products[half] = _mm256_add_epi16(products[half], product);
                    }
                }
            }
        }
        let factors: [[[u8; 16]; 2]; 2] = cast(factors(block));
        let scales: [[[u8; 8]; 2]; 2] = cast(*scales(block, part));
        for half in 0..2 {
            let scale = |i: usize| {
                let scales: [u8; 16] = cast([scales[i][half], [0; 8]]);
                let scales = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(cast(scales)));
                _mm256_mul_ps(_mm256_cvtph_ps(cast(factors[i][half])), scales)
            };
            let (scales, offsets) = (scale(0), scale(1));
            for (r, sums) in sums.iter_mut().enumerate() {
                let product = _mm256_madd_epi16(products[r][half], ones);
                let factor = _mm256_set1_ps(words.scale(r));
                let scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(product), factor);
                let sum = _mm256_fmadd_ps(scaled, scales, sums[half]);
                let values = _mm256_set1_ps(words.value_sum(r));
                sums[half] = _mm256_fnmadd_ps(values, offsets, sum);
            }
        }
    }
    sums.map(cast)
}
