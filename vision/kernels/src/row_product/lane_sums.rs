//! Partial sums of dot products.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use pulp::cast;

use super::input_lanes::InputLanes;

/// Dot products that are completed together.
const TOTALS: usize = 4;

/// Partial sums of the dot products of the input rows in `R` registers with `C` weight rows.
///
/// A dot product has eight of them: sum `i` adds the products at positions `i`, `i + 8`, `i + 16` and
/// so on. So a result does not depend on which rows are computed together. After
/// `StoredValues::SUM_STEPS` steps, the sums are added to [`PairSums`].
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
}

/// Sums of two neighbouring partial sums each. A dot product has four of them. A register has those of
/// two dot products for each of its input rows.
pub(crate) struct PairSums<L: InputLanes, const R: usize, const C: usize>([[L::Vector; C]; R]);

impl<L: InputLanes, const R: usize, const C: usize> PairSums<L, R, C> {
    /// Creates sums of zero.
    #[inline(always)]
    pub(crate) fn new(lanes: L) -> Self {
        Self([[lanes.zero(); C]; R])
    }

    /// Adds neighbouring partial sums.
    #[inline(always)]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the compiler keeps sums in registers that are not borrowed"
    )]
    pub(crate) fn add(&mut self, lanes: L, sums: LaneSums<L, R, C>) {
        for (pairs, sums) in self.0.iter_mut().zip(sums.0) {
            for (c, pair) in pairs.iter_mut().enumerate().take(C.div_ceil(2)) {
                // The last of an odd number is its own partner.
                let (first, second) = (sums[2 * c], sums[(2 * c + 1).min(C - 1)]);
                *pair = lanes.add(*pair, lanes.add_neighbours(first, second));
            }
        }
    }

    /// Adds the four sums of each dot product: first neighbours, then halves. Adds the results to the
    /// outputs of each input row at `places`.
    #[inline(always)]
    pub(crate) fn add_to(self, lanes: L, outputs: &mut [&mut [f32]], places: Range<usize>) {
        let simd = lanes.narrow();
        for (pairs, outputs) in self.0.iter().zip(outputs.chunks_mut(L::ROWS)) {
            for first in (0..C).step_by(TOTALS) {
                // Fewer than four dot products repeat the last register.
                let index = |i: usize| (first / 2 + i).min(C.div_ceil(2) - 1);
                let sums = lanes.add_neighbours(pairs[index(0)], pairs[index(1)]);
                for (row, outputs) in outputs.iter_mut().enumerate() {
                    let sums = cast(lanes.row(sums, row));
                    let low = simd.avx._mm256_castps256_ps128(sums);
                    let high = simd.avx._mm256_extractf128_ps::<1>(sums);
                    let totals: [f32; TOTALS] = cast(simd.sse._mm_add_ps(low, high));
                    let later_places = places.start + first..places.end;
                    let outputs = outputs.get_mut(later_places).unwrap_or_default();
                    // The loop over a constant number of outputs has no branches.
                    match outputs.first_chunk_mut::<C>() {
                        Some(outputs) if C <= TOTALS => add_totals(outputs, totals),
                        _ => add_totals(outputs, totals),
                    }
                }
            }
        }
    }
}

/// Adds each total to its output. Totals without an output are left out.
#[inline(always)]
fn add_totals(outputs: &mut [f32], totals: [f32; TOTALS]) {
    for (output, total) in outputs.iter_mut().zip(totals) {
        *output += total;
    }
}
