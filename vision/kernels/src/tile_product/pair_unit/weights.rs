//! Weight rows as pairs.

use std::ops::Range;

use super::super::bf16_rows::Bf16Rows;
use super::sizes::{BLOCK_COLUMNS, LANES, WEIGHT_ROWS};

/// Pairs of two weight rows: eight of the first, then eight of the second.
pub(super) type TwoRowPairs = [u32; 2 * LANES];

/// The pairs of a block of columns, for eight weight rows: the first and the fifth row, the second and
/// the sixth, and so on. The horizontal sums are then in the order of the outputs.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct WeightPairs(pub(super) [TwoRowPairs; WEIGHT_ROWS / 2]);

impl WeightPairs {
    pub(super) const ZERO: Self = Self([[0; 2 * LANES]; WEIGHT_ROWS / 2]);
}

/// Places of the values of two rows of a block in the pairs of both: the columns `j + 8` and `j`.
pub(super) const PAIR_PLACES: [u16; 2 * BLOCK_COLUMNS] = {
    let mut places = [0; 2 * BLOCK_COLUMNS];
    let mut place = 0;
    while place < places.len() {
        let (row, pair, is_second) = (place / BLOCK_COLUMNS, place % BLOCK_COLUMNS / 2, place % 2);
        // The processor first adds the product of the second values.
        let column = if is_second == 1 { pair } else { pair + LANES };
        places[place] = (row * BLOCK_COLUMNS + column) as u16;
        place += 1;
    }
    places
};

/// Returns some columns of the weight rows from `first` on. The last row stands for the rows after it.
pub(super) fn parts_of_rows<'a>(
    weight: Bf16Rows<'a>,
    first: usize,
    columns: &Range<usize>,
) -> [&'a [u16]; WEIGHT_ROWS] {
    let mut parts = [weight.values; WEIGHT_ROWS];
    for (r, part) in parts.iter_mut().enumerate() {
        let row = (first + r).min(weight.rows - 1) * weight.columns;
        *part = &weight.values[row + columns.start..row + columns.end];
    }
    parts
}
