//! Vector instructions for the rows of panels.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use pulp::{Scalar, Simd};

use super::panels::LANES;

/// The vector instructions of a processor.
pub(super) trait PanelLanes: Simd {
    /// Registers with a row of a panel.
    type Row: Copy;
    /// True if the registers have room for the sums of 16 rows, false if they have room for four.
    const HAS_16_SUMS: bool;

    /// Returns a row of zeros.
    fn zeros(self) -> Self::Row;

    /// Loads a row.
    fn load(self, values: &[f32; LANES]) -> Self::Row;

    /// Stores a row.
    fn store(self, row: Self::Row, values: &mut [f32; LANES]);

    /// Computes `x · weights + sums`, rounded once.
    fn multiply_add(self, x: f32, weights: Self::Row, sums: Self::Row) -> Self::Row;
}

/// The instructions that the compiler uses for every processor of the platform.
impl PanelLanes for Scalar {
    type Row = [f32; LANES];
    const HAS_16_SUMS: bool = false;

    #[inline(always)]
    fn zeros(self) -> [f32; LANES] {
        [0.; LANES]
    }

    #[inline(always)]
    fn load(self, values: &[f32; LANES]) -> [f32; LANES] {
        *values
    }

    #[inline(always)]
    fn store(self, row: [f32; LANES], values: &mut [f32; LANES]) {
        *values = row;
    }

    #[inline(always)]
    fn multiply_add(self, x: f32, weights: [f32; LANES], mut sums: [f32; LANES]) -> [f32; LANES] {
        for lane in 0..LANES {
            sums[lane] = x.mul_add(weights[lane], sums[lane]);
        }
        sums
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use pulp::x86::{V3, V4};
    use pulp::{cast, f32x8, f32x16};

    use super::{LANES, PanelLanes};

    impl PanelLanes for V3 {
        type Row = [f32x8; 2];
        const HAS_16_SUMS: bool = false;

        #[inline(always)]
        fn zeros(self) -> [f32x8; 2] {
            [self.splat_f32x8(0.); 2]
        }

        #[inline(always)]
        fn load(self, values: &[f32; LANES]) -> [f32x8; 2] {
            cast(*values)
        }

        #[inline(always)]
        fn store(self, row: [f32x8; 2], values: &mut [f32; LANES]) {
            *values = cast(row);
        }

        #[inline(always)]
        fn multiply_add(self, x: f32, weights: [f32x8; 2], sums: [f32x8; 2]) -> [f32x8; 2] {
            let x = self.splat_f32x8(x);
            [self.mul_add_f32x8(x, weights[0], sums[0]), self.mul_add_f32x8(x, weights[1], sums[1])]
        }
    }

    impl PanelLanes for V4 {
        type Row = f32x16;
        const HAS_16_SUMS: bool = true;

        #[inline(always)]
        fn zeros(self) -> f32x16 {
            self.splat_f32x16(0.)
        }

        #[inline(always)]
        fn load(self, values: &[f32; LANES]) -> f32x16 {
            cast(*values)
        }

        #[inline(always)]
        fn store(self, row: f32x16, values: &mut [f32; LANES]) {
            *values = cast(row);
        }

        #[inline(always)]
        fn multiply_add(self, x: f32, weights: f32x16, sums: f32x16) -> f32x16 {
            self.mul_add_f32x16(self.splat_f32x16(x), weights, sums)
        }
    }
}
