//! The kernel for AVX-512 with VNNI: one instruction computes 64 products of bytes and
//! adds them in groups of four.

use std::arch::x86_64::{
    __m512, __m512i, _mm512_and_si512, _mm512_cvtepi32_ps, _mm512_cvtepu8_epi32, _mm512_cvtph_ps,
    _mm512_dpbusd_epi32, _mm512_fmadd_ps, _mm512_fnmadd_ps, _mm512_mul_ps, _mm512_set1_epi8,
    _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps, _mm512_srli_epi16, _mm512_xor_si512,
};

use pulp::cast;

use super::byte_panels::BytePanel;
use super::byte_rows::ByteRows;
use super::kernel::{Kernel, PanelProducts};
use super::nibble_panels::{NibblePanel, PAIRS, PARTS, factors, pair, scales};
use super::panel_rows::{BLOCK_QUADS, PANEL_ROWS};
use super::rounding_avx2::round_rows;
use super::row_rounding::RowRounding;

/// The processor has AVX-512 with VNNI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Avx512(());

impl Avx512 {
    /// Returns the kernel if the processor has the instructions.
    pub(super) fn try_new() -> Option<Self> {
        let found = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vnni");
        found.then_some(Self(()))
    }
}

impl Kernel for Avx512 {
    const MAX_ROWS: usize = 6;

    #[inline]
    #[expect(unsafe_code, reason = "takes less than half of the time of code without intrinsics")]
    fn round_rows(self, rounding: RowRounding<'_>) {
        // SAFETY: As in `multiply_bytes`.
        unsafe { round_rows(rounding) }
    }

    #[inline]
    #[expect(unsafe_code, reason = "products take a third of the time of those in f32")]
    fn multiply_bytes<const R: usize, const G: usize>(
        self,
        x: &ByteRows,
        panels: [BytePanel<'_>; G],
    ) -> [[PanelProducts; R]; G] {
        // SAFETY: `try_new` is the only way to a value of this type. It has found the features.
        unsafe { multiply_bytes(x, panels) }
    }

    #[inline]
    #[expect(unsafe_code, reason = "products take a third of the time of those in f32")]
    fn multiply_nibbles<const R: usize, const G: usize>(
        self,
        x: &ByteRows,
        panels: [NibblePanel<'_>; G],
    ) -> [[PanelProducts; R]; G] {
        // SAFETY: As in `multiply_bytes`.
        unsafe { multiply_nibbles(x, panels) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn multiply_bytes<const R: usize, const G: usize>(
    x: &ByteRows,
    panels: [BytePanel<'_>; G],
) -> [[PanelProducts; R]; G] {
    // The instruction takes unsigned weights, so 128 is added to each: its highest bit flips. The
    // sums begin with what this adds too much.
    let flip = _mm512_set1_epi8(i8::MIN);
    let mut sums = [[_mm512_setzero_ps(); G]; R];
    let blocks = panels[0].quads.len();
    let quads = panels.map(|panel| &panel.quads[..blocks]);
    let scales = panels.map(|panel| &panel.scales[..blocks]);
    for (block, words) in x.blocks::<R>().enumerate().take(blocks) {
        let mut products = [[_mm512_set1_epi32(0); G]; R];
        for (r, products) in products.iter_mut().enumerate() {
            *products = [_mm512_set1_epi32(-128 * words.sum(r)); G];
        }
        for quad in 0..BLOCK_QUADS {
            let mut weights = [flip; G];
            for (weights, quads) in weights.iter_mut().zip(&quads) {
                *weights = _mm512_xor_si512(*weights, cast::<_, __m512i>(quads[block][quad]));
            }
            for (products, x) in products.iter_mut().zip(words.quads(quad)) {
                let x = _mm512_set1_epi32(x);
                for (product, weights) in products.iter_mut().zip(&weights) {
                    *product = _mm512_dpbusd_epi32(*product, *weights, x);
                }
            }
        }
        for g in 0..G {
            let scales = _mm512_cvtph_ps(cast(scales[g][block]));
            for r in 0..R {
                let product = _mm512_cvtepi32_ps(products[r][g]);
                let scaled = _mm512_mul_ps(product, _mm512_set1_ps(words.scale(r)));
                sums[r][g] = _mm512_fmadd_ps(scaled, scales, sums[r][g]);
            }
        }
    }
    to_products(&sums)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn multiply_nibbles<const R: usize, const G: usize>(
    x: &ByteRows,
    panels: [NibblePanel<'_>; G],
) -> [[PanelProducts; R]; G] {
    let low = _mm512_set1_epi8(15);
    let mut sums = [[_mm512_setzero_ps(); G]; R];
    let count = panels[0].blocks.len();
    let blocks = panels.map(|panel| &panel.blocks[..count]);
    for (i, words) in x.blocks::<R>().enumerate().take(count * PARTS) {
        let (block, part) = (i / PARTS, i % PARTS);
        let mut products = [[_mm512_set1_epi32(0); G]; R];
        for quads in 0..PAIRS {
            let mut weights = [[low; 2]; G];
            for (weights, blocks) in weights.iter_mut().zip(&blocks) {
                let pairs: __m512i = cast(*pair(&blocks[block], part, quads));
                let high = _mm512_srli_epi16::<4>(pairs);
                *weights = [_mm512_and_si512(pairs, low), _mm512_and_si512(high, low)];
            }
            for half in 0..2 {
                for (products, x) in products.iter_mut().zip(words.quads(2 * quads + half)) {
                    let x = _mm512_set1_epi32(x);
                    for (product, weights) in products.iter_mut().zip(&weights) {
                        *product = _mm512_dpbusd_epi32(*product, weights[half], x);
                    }
                }
            }
        }
        for g in 0..G {
            let factors = factors(&blocks[g][block]);
            let scales = scales(&blocks[g][block], part);
            let scale = |i: usize| {
                let scales = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(cast(scales[i])));
                _mm512_mul_ps(_mm512_cvtph_ps(cast(factors[i])), scales)
            };
            let (scales, offsets) = (scale(0), scale(1));
            for r in 0..R {
                let factor = _mm512_set1_ps(words.scale(r));
                let scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(products[r][g]), factor);
                let sum = _mm512_fmadd_ps(scaled, scales, sums[r][g]);
                let values = _mm512_set1_ps(words.sum(r) as f32 * words.scale(r));
                sums[r][g] = _mm512_fnmadd_ps(values, offsets, sum);
            }
        }
    }
    to_products(&sums)
}

#[target_feature(enable = "avx512f")]
fn to_products<const R: usize, const G: usize>(sums: &[[__m512; G]; R]) -> [[PanelProducts; R]; G] {
    let mut outputs = [[[0.; PANEL_ROWS]; R]; G];
    for (g, outputs) in outputs.iter_mut().enumerate() {
        for (output, sums) in outputs.iter_mut().zip(sums) {
            *output = cast(sums[g]);
        }
    }
    outputs
}
