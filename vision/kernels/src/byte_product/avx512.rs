//! The kernel for AVX-512 with VNNI: one instruction computes 64 products of bytes and
//! adds them in groups of four.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_cvtepi32_ps, _mm512_cvtepu8_epi32, _mm512_cvtph_ps,
    _mm512_dpbusd_epi32, _mm512_fmadd_ps, _mm512_fnmadd_ps, _mm512_mul_ps, _mm512_set1_epi8,
    _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps, _mm512_srli_epi16, _mm512_xor_si512,
};
use std::array::from_fn;
use std::hint::black_box;

use pulp::cast;

use super::byte_panels::{ByteBlock, BytePanel};
use super::byte_rows::ByteRows;
use super::kernel::{Kernel, PanelProducts};
use super::nibble_panels::{NibblePanel, PAIRS, PARTS, factors, pair, scales};
use super::panel_rows::{BLOCK_QUADS, QUAD_BYTES};
use super::rounding_avx2::round_rows;
use super::row_rounding::RowRounding;
use crate::row_product::prefetch;

/// With more input rows than this, the kernel prefetches weights. With fewer, the hardware prefetcher is
/// enough, and software prefetching makes a `Q4K` product of one row 1.5 times as slow.
const MAX_UNFETCHED_ROWS: usize = 4;
/// Prefetch distance in bytes. Prefetching saves a sixth of the time of a `Q8_0` product with eight rows.
const BYTES_AHEAD: usize = 36 * QUAD_BYTES;

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
    const MAX_ROWS: usize = 8;

    #[inline]
    #[expect(unsafe_code, reason = "takes less than half of the time of code without intrinsics")]
    fn round_rows(self, rounding: RowRounding<'_>) {
        // SAFETY: As in `multiply_bytes`.
        unsafe { round_rows(rounding) }
    }

    #[inline]
    #[expect(unsafe_code, reason = "products take a third of the time of those in f32")]
    fn multiply_bytes<const R: usize>(
        self,
        x: &ByteRows,
        panel: BytePanel<'_>,
    ) -> [PanelProducts; R] {
        // SAFETY: `try_new` is the only way to a value of this type. It has found the features.
        unsafe { multiply_bytes(x, panel) }
    }

    #[inline]
    #[expect(unsafe_code, reason = "products take a third of the time of those in f32")]
    fn multiply_nibbles<const R: usize>(
        self,
        x: &ByteRows,
        panel: NibblePanel<'_>,
    ) -> [PanelProducts; R] {
        // SAFETY: As in `multiply_bytes`.
        unsafe { multiply_nibbles(x, panel) }
    }
}

/// Hides the length of a loop from the compiler, so that the compiler does not unroll it. An unrolled loop
/// loads the weights of all steps first and spills the sums to the stack. A product then takes up to 1.5
/// times as long.
fn hide_length(count: usize) -> usize {
    black_box(count)
}

/// Prefetches the line at [`BYTES_AHEAD`] if there are more than [`MAX_UNFETCHED_ROWS`] input rows.
#[inline(always)]
fn fetch_ahead<const R: usize>(line: &[u8; QUAD_BYTES]) {
    if R > MAX_UNFETCHED_ROWS {
        prefetch(line, BYTES_AHEAD);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn multiply_bytes<const R: usize>(x: &ByteRows, panel: BytePanel<'_>) -> [PanelProducts; R] {
    // The instruction takes unsigned weights, so 128 is added to each: its highest bit flips.
    let flip = _mm512_set1_epi8(i8::MIN);
    let quad_count = hide_length(BLOCK_QUADS);
    let mut sums = [_mm512_setzero_ps(); R];
    for (i, words) in x.blocks::<R>().enumerate() {
        let ByteBlock { scales, quads } = panel.block(i);
        let mut products: [__m512i; R] = from_fn(|r| _mm512_set1_epi32(words.correction(r)));
        for (quad, weights) in quads.iter().enumerate().take(quad_count) {
            fetch_ahead::<R>(weights);
            let weights = _mm512_xor_si512(flip, cast(*weights));
            for (product, x) in products.iter_mut().zip(words.quads(quad)) {
                *product = _mm512_dpbusd_epi32(*product, weights, _mm512_set1_epi32(x));
            }
        }
        let scales = _mm512_cvtph_ps(cast(*scales));
        for (r, sum) in sums.iter_mut().enumerate() {
            let product = _mm512_cvtepi32_ps(products[r]);
            let scaled = _mm512_mul_ps(product, _mm512_set1_ps(words.scale(r)));
            *sum = _mm512_fmadd_ps(scaled, scales, *sum);
        }
    }
    sums.map(cast)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn multiply_nibbles<const R: usize>(x: &ByteRows, panel: NibblePanel<'_>) -> [PanelProducts; R] {
    let low = _mm512_set1_epi8(15);
    let pair_count = hide_length(PAIRS);
    let mut sums = [_mm512_setzero_ps(); R];
    for (i, words) in x.blocks::<R>().enumerate().take(panel.blocks.len() * PARTS) {
        let (block, part) = (&panel.blocks[i / PARTS], i % PARTS);
        let mut products = [_mm512_set1_epi32(0); R];
        for quads in 0..pair_count {
            let pairs = pair(block, part, quads);
            fetch_ahead::<R>(pairs);
            let pairs: __m512i = cast(*pairs);
            let high = _mm512_srli_epi16::<4>(pairs);
            let weights = [_mm512_and_si512(pairs, low), _mm512_and_si512(high, low)];
            for (half, weights) in weights.into_iter().enumerate() {
                for (product, x) in products.iter_mut().zip(words.quads(2 * quads + half)) {
                    *product = _mm512_dpbusd_epi32(*product, weights, _mm512_set1_epi32(x));
                }
            }
        }
        let factors = factors(block);
        let scales = scales(block, part);
        let scale = |i: usize| {
            let scales = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(cast(scales[i])));
            _mm512_mul_ps(_mm512_cvtph_ps(cast(factors[i])), scales)
        };
        let (scales, offsets) = (scale(0), scale(1));
        for (r, sum) in sums.iter_mut().enumerate() {
            let factor = _mm512_set1_ps(words.scale(r));
            let scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(products[r]), factor);
            let values = _mm512_set1_ps(words.value_sum(r));
            *sum = _mm512_fnmadd_ps(values, offsets, _mm512_fmadd_ps(scaled, scales, *sum));
        }
    }
    sums.map(cast)
}
