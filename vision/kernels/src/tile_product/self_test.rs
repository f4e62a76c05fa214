//! The test of the tile unit at its first use.

use super::rounding::round_input;
use super::tile_task::Weight;
use super::tile_unit::TileUnit;
use super::widen;
use crate::row_product::product_task::RowProduct;
use crate::row_product::stored_values::TileValues;

/// Returns true if the tile unit and the vector instructions give equal products of pseudo-random
/// values of very different sizes.
pub(super) fn is_equal(unit: TileUnit) -> bool {
    /// A chunk, a block of the next one, and a part of a block.
    const COLUMNS: usize = 1024 + 128 + 37;
    const ROWS: usize = 35;
    const INPUTS: usize = 18;
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let size = f32::from((state >> 8 & 15) as u8) - 8.;
        ((state >> 16) as f32 / 32768. - 1.) * size.exp2()
    };
    let x: Vec<f32> = (0..INPUTS * COLUMNS).map(|_| next()).collect();
    let values: Vec<u16> = (0..ROWS * COLUMNS).map(|_| round_input(next())).collect();
    let weight = Weight { values: &values, rows: ROWS, columns: COLUMNS };
    let got = unit.product(&x, INPUTS, weight);
    let x: Vec<f32> = x.iter().map(|x| widen(round_input(*x))).collect();
    let product = RowProduct { x: &x, n: INPUTS, rows: ROWS };
    product.compute::<TileValues>(&values).is_some_and(|want| {
        want.iter().map(|value| value.to_bits()).eq(got.iter().map(|value| value.to_bits()))
    })
}
