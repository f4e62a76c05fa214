//! Vector registers that hold eight values of one input row (AVX2) or of two (AVX-512).
//!
//! The eight partial sums of a dot product are the same in both, so results are equal.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use pulp::x86::{V3, V4};
use pulp::{Simd, cast, f32x8, f32x16};

use super::stored_values::LANES;

/// Instructions of a processor, with registers for values of [`Self::ROWS`] rows.
pub(crate) trait InputLanes: Simd {
    /// A register.
    type Vector: Copy;
    /// Values of a register: [`LANES`] of each row.
    type Values: Copy;
    /// Input rows in a register.
    const ROWS: usize;

    /// Returns the instructions for registers of one row.
    fn narrow(self) -> V3;

    /// Creates a register of zeros.
    fn zero(self) -> Self::Vector;

    /// Loads the values of a register.
    fn load(self, values: Self::Values) -> Self::Vector;

    /// Repeats the values of a weight row for each input row.
    fn repeat(self, weights: f32x8) -> Self::Vector;

    /// Returns the values of a row.
    fn row(self, vector: Self::Vector, row: usize) -> f32x8;

    /// Computes `x · weights + sums`.
    fn multiply_add(
        self,
        x: Self::Vector,
        weights: Self::Vector,
        sums: Self::Vector,
    ) -> Self::Vector;

    /// Computes `a + b`.
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Adds neighbours in each quarter of 16 bytes: two sums of `a`, then two of `b`.
    fn add_neighbours(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Splits values into those of registers.
    fn split(values: &[[f32; LANES]]) -> &[Self::Values];
}

impl InputLanes for V3 {
    type Vector = f32x8;
    type Values = [f32; LANES];
    const ROWS: usize = 1;

    #[inline(always)]
    fn narrow(self) -> V3 {
        self
    }

    #[inline(always)]
    fn zero(self) -> f32x8 {
        self.splat_f32x8(0.)
    }

    #[inline(always)]
    fn load(self, values: [f32; LANES]) -> f32x8 {
        cast(values)
    }

    #[inline(always)]
    fn repeat(self, weights: f32x8) -> f32x8 {
        weights
    }

    #[inline(always)]
    fn row(self, vector: f32x8, _: usize) -> f32x8 {
        vector
    }

    #[inline(always)]
    fn multiply_add(self, x: f32x8, weights: f32x8, sums: f32x8) -> f32x8 {
        self.mul_add_f32x8(x, weights, sums)
    }

    #[inline(always)]
    fn add(self, a: f32x8, b: f32x8) -> f32x8 {
        self.add_f32x8(a, b)
    }

    #[inline(always)]
    fn add_neighbours(self, a: f32x8, b: f32x8) -> f32x8 {
        cast(self.avx._mm256_hadd_ps(cast(a), cast(b)))
    }

    #[inline(always)]
    fn split(values: &[[f32; LANES]]) -> &[[f32; LANES]] {
        values
    }
}

impl InputLanes for V4 {
    type Vector = f32x16;
    type Values = [[f32; LANES]; 2];
    const ROWS: usize = 2;

    #[inline(always)]
    fn narrow(self) -> V3 {
        *self
    }

    #[inline(always)]
    fn zero(self) -> f32x16 {
        self.splat_f32x16(0.)
    }

    #[inline(always)]
    fn load(self, values: [[f32; LANES]; 2]) -> f32x16 {
        cast(values)
    }

    #[inline(always)]
    fn repeat(self, weights: f32x8) -> f32x16 {
        cast(self.avx512dq._mm512_broadcast_f32x8(cast(weights)))
    }

    #[inline(always)]
    fn row(self, vector: f32x16, row: usize) -> f32x8 {
        let rows: [f32x8; 2] = cast(vector);
        rows[row]
    }

    #[inline(always)]
    fn multiply_add(self, x: f32x16, weights: f32x16, sums: f32x16) -> f32x16 {
        self.mul_add_f32x16(x, weights, sums)
    }

    #[inline(always)]
    fn add(self, a: f32x16, b: f32x16) -> f32x16 {
        self.add_f32x16(a, b)
    }

    #[inline(always)]
    fn add_neighbours(self, a: f32x16, b: f32x16) -> f32x16 {
        let (a, b) = (cast(a), cast(b));
        let even = self.avx512f._mm512_shuffle_ps::<0b10_00_10_00>(a, b);
        let odd = self.avx512f._mm512_shuffle_ps::<0b11_01_11_01>(a, b);
        cast(self.avx512f._mm512_add_ps(even, odd))
    }

    #[inline(always)]
    fn split(values: &[[f32; LANES]]) -> &[[[f32; LANES]; 2]] {
        values.as_chunks().0
    }
}
