//! Registers with the values of a row of a panel.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use pulp::{Scalar, Simd};

use super::panel_product::LANES;

/// Instructions of a processor.
pub(super) trait PanelLanes: Simd {
    /// The registers.
    type Row: Copy;
    /// True if the sums of 16 rows of panels fit into the registers of the processor, false if only
    /// those of four do.
    const WIDE: bool;

    /// Returns zeros.
    fn zeros(self) -> Self::Row;

    /// Loads the values of a row.
    fn load(self, values: &[f32; LANES]) -> Self::Row;

    /// Stores the values of a row.
    fn store(self, row: Self::Row, values: &mut [f32; LANES]);

    /// Computes `x · weights + sums`, rounded once.
    fn multiply_add(self, x: f32, weights: Self::Row, sums: Self::Row) -> Self::Row;
}

/// The instructions that the compiler uses for every processor of the platform.
impl PanelLanes for Scalar {
    type Row = [f32; LANES];
    const WIDE: bool = false;

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
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum = x.mul_add(weight, *sum);
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
        const WIDE: bool = false;

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
        const WIDE: bool = true;

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
