//! The test of a unit of the processor at its first use.

use super::bf16_rows::Bf16Rows;
use super::portable;
use super::rounding::{MIN_PARALLEL_VALUES, round_input, widen};
use crate::output_columns::MIN_PARALLEL_WORK;

/// Values of a row: a chunk, a block of the next one, and a part of a block.
const COLUMNS: usize = 1024 + 128 + 37;
/// Inputs and weight rows of the products. AMX multiplies 16 of both at a time, and pairs up to six inputs
/// with eight weight rows. Pairs read the weights of up to 12 inputs where they are stored.
const SIZES: [[usize; 2]; 4] = [[6, 35], [35, 6], [11, 19], [13, 16]];
/// Smallest and largest exponents of inputs and weights: usual ones, and once the smallest of numbers that
/// are not zero.
const EXPONENTS: [[[f32; 2]; 2]; 4] = [USUAL, [[-39., -30.], [-71., -60.]], USUAL, USUAL];
/// Usual exponents.
const USUAL: [[f32; 2]; 2] = [[-8., 7.]; 2];

/// Returns true if a unit and the portable code give equal products of pseudo-random values. All of it
/// runs on this thread, because other threads may wait for the result.
pub(super) fn is_equal(product: impl Fn(&[f32], usize, Bf16Rows) -> Vec<f32>) -> bool {
    const {
        let mut i = 0;
        while i < SIZES.len() {
            assert!(SIZES[i][0] * SIZES[i][1] * COLUMNS < MIN_PARALLEL_WORK);
            assert!(SIZES[i][0] * COLUMNS < MIN_PARALLEL_VALUES);
            i += 1;
        }
    }
    let mut state = 1u32;
    let mut next = |[smallest, largest]: [f32; 2]| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let exponent = smallest + (largest - smallest) * ((state & 255) as f32 / 255.).round();
        ((state >> 16) as f32 / 32768. - 1.) * exponent.exp2()
    };
    SIZES.into_iter().zip(EXPONENTS).all(|([inputs, rows], [of_inputs, of_weights])| {
        let x: Vec<u16> = (0..inputs * COLUMNS).map(|_| round_input(next(of_inputs))).collect();
        let values: Vec<u16> =
            (0..rows * COLUMNS).map(|_| round_weight(next(of_weights))).collect();
        let [x, wide_values]: [Vec<f32>; 2] =
            [&x, &values].map(|bits| bits.iter().map(|bits| widen(*bits)).collect());
        let weight = Bf16Rows { values: &values, rows, columns: COLUMNS };
        let got = product(&x, inputs, weight);
        let want = portable::multiply(&x, &wide_values, [inputs, rows, COLUMNS]);
        want.iter().map(|value| value.to_bits()).eq(got.iter().map(|value| value.to_bits()))
    })
}

/// Rounds a weight towards zero to bf16. Magnitudes below 2⁻⁷² become zero.
fn round_weight(value: f32) -> u16 {
    if value.abs() < 2f32.powi(-72) { 0 } else { (value.to_bits() >> 16) as u16 }
}
