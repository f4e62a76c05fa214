//! The test of the tile unit at its first use.

use super::portable;
use super::rounding::{round_input, widen};
use super::tile_task::Bf16Rows;
use super::tile_unit::TileUnit;

/// Returns true if the tile unit and the portable code give equal products of pseudo-random values. All
/// of it runs on this thread: other threads may wait for the result.
pub(super) fn is_equal(unit: TileUnit) -> bool {
    /// A chunk, a block of the next one, and a part of a block.
    const COLUMNS: usize = 1024 + 128 + 37;
    /// Two groups, and a part of a group.
    const ROWS: usize = 35;
    /// Few enough for one thread (`MIN_PARALLEL_WORK`).
    const INPUTS: usize = 6;
    let mut state = 1u32;
    let mut next = |exponents: [f32; 2]| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [smallest, largest] = exponents;
        let exponent = smallest + (largest - smallest) * (f32::from(state as u8) / 255.).round();
        ((state >> 16) as f32 / 32768. - 1.) * exponent.exp2()
    };
    // The second range has the smallest numbers that are not zero.
    [[[-8., 7.], [-8., 7.]], [[-40., -30.], [-72., -60.]]].into_iter().all(|[inputs, weights]| {
        let x: Vec<u16> = (0..INPUTS * COLUMNS).map(|_| round_input(next(inputs))).collect();
        let values = (0..ROWS * COLUMNS).map(|_| round_weight(next(weights)));
        let values: Vec<u16> = values.collect();
        let [x, wide_values] =
            [&x, &values].map(|bits| bits.iter().map(|bits| widen(*bits)).collect());
        let (x, wide_values): (Vec<f32>, Vec<f32>) = (x, wide_values);
        let rows = Bf16Rows { values: &values, rows: ROWS, columns: COLUMNS };
        let got = unit.product(&x, INPUTS, rows);
        let want = portable::multiply(&x, &wide_values, [INPUTS, ROWS, COLUMNS]);
        want.iter().map(|value| value.to_bits()).eq(got.iter().map(|value| value.to_bits()))
    })
}

/// Rounds a weight towards zero to bf16. Magnitudes below 2⁻⁷² become zero.
fn round_weight(value: f32) -> u16 {
    if value.abs() < 2f32.powi(-72) { 0 } else { (value.to_bits() >> 16) as u16 }
}
