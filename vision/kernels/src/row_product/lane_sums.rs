//! Partial sums of dot products, for AVX2 and FMA.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use pulp::x86::V3;
use pulp::{cast, f32x8};

/// Partial sums of the dot products of `R` input rows, at most four, with `C` weight rows.
///
/// A dot product has eight of them: sum `i` adds the products at positions `i`, `i + 8`, `i + 16` and
/// so on. So a result does not depend on which rows are computed together.
pub(crate) struct LaneSums<const R: usize, const C: usize>([[f32x8; C]; R]);

impl<const R: usize, const C: usize> LaneSums<R, C> {
    /// Creates sums of zero.
    #[inline(always)]
    pub(crate) fn new(simd: V3) -> Self {
        Self([[simd.splat_f32x8(0.); C]; R])
    }

    /// Adds the products of eight values of input row `r` with those of all weight rows.
    #[inline(always)]
    pub(crate) fn add_products(&mut self, simd: V3, r: usize, x: f32x8, weights: &[f32x8; C]) {
        for (sum, weight) in self.0[r].iter_mut().zip(weights) {
            *sum = simd.mul_add_f32x8(x, *weight, *sum);
        }
    }

    /// Adds the eight partial sums of each dot product: first neighbours, then pairs, then halves.
    /// Adds the results to the outputs of each input row at `places`.
    #[inline(always)]
    pub(crate) fn add_to(self, simd: V3, outputs: &mut [&mut [f32]], places: Range<usize>) {
        for (c, place) in places.enumerate() {
            // Fewer than four rows repeat the last one.
            let rows = [0, 1, 2, 3].map(|r| self.0[r.min(R - 1)][c]);
            let first = simd.avx._mm256_hadd_ps(cast(rows[0]), cast(rows[1]));
            let second = simd.avx._mm256_hadd_ps(cast(rows[2]), cast(rows[3]));
            let pairs = simd.avx._mm256_hadd_ps(first, second);
            let low = simd.avx._mm256_castps256_ps128(pairs);
            let high = simd.avx._mm256_extractf128_ps::<1>(pairs);
            let totals: [f32; 4] = cast(simd.sse._mm_add_ps(low, high));
            for (outputs, total) in outputs.iter_mut().take(R).zip(totals) {
                outputs[place] += total;
            }
        }
    }
}
