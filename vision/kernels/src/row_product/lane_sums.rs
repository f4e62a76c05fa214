//! Partial sums of dot products.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use pulp::cast;

use super::input_lanes::InputLanes;

/// Rows whose sums are added together.
const TOTALS: usize = 4;

/// Partial sums of the dot products of the input rows in `R` registers with `C` weight rows.
///
/// A dot product has eight of them: sum `i` adds the products at positions `i`, `i + 8`, `i + 16` and
/// so on. So a result does not depend on which rows are computed together.
pub(crate) struct LaneSums<L: InputLanes, const R: usize, const C: usize>([[L::Vector; C]; R]);

impl<L: InputLanes, const R: usize, const C: usize> LaneSums<L, R, C> {
    /// Creates sums of zero.
    #[inline(always)]
    pub(crate) fn new(lanes: L) -> Self {
        Self([[lanes.zero(); C]; R])
    }

    /// Adds the products of values of the rows in register `r` with those of all weight rows.
    #[inline(always)]
    pub(crate) fn add_products(
        &mut self,
        lanes: L,
        r: usize,
        x: L::Vector,
        weights: &[L::Vector; C],
    ) {
        for (sum, weight) in self.0[r].iter_mut().zip(weights) {
            *sum = lanes.multiply_add(x, *weight, *sum);
        }
    }

    /// Adds the eight partial sums of each dot product: first neighbours, then pairs, then halves.
    /// Adds the results to the outputs of each input row at `places`.
    #[inline(always)]
    pub(crate) fn add_to(self, lanes: L, outputs: &mut [&mut [f32]], places: Range<usize>) {
        let simd = lanes.narrow();
        for first_row in (0..R * L::ROWS).step_by(TOTALS) {
            for (c, place) in places.clone().enumerate() {
                // Fewer than four rows repeat the last one.
                let index = |i: usize| (first_row + i).min(R * L::ROWS - 1);
                let row = |i: usize| {
                    let row = index(i);
                    lanes.row(self.0[row / L::ROWS][c], row % L::ROWS)
                };
                let rows = [row(0), row(1), row(2), row(3)];
                let first = simd.avx._mm256_hadd_ps(cast(rows[0]), cast(rows[1]));
                let second = simd.avx._mm256_hadd_ps(cast(rows[2]), cast(rows[3]));
                let pairs = simd.avx._mm256_hadd_ps(first, second);
                let low = simd.avx._mm256_castps256_ps128(pairs);
                let high = simd.avx._mm256_extractf128_ps::<1>(pairs);
                let totals: [f32; TOTALS] = cast(simd.sse._mm_add_ps(low, high));
                // An incomplete register ends with a row that has no outputs.
                let outputs = outputs.iter_mut().take(R * L::ROWS).skip(first_row);
                for (outputs, total) in outputs.zip(totals) {
                    outputs[place] += total;
                }
            }
        }
    }
}
