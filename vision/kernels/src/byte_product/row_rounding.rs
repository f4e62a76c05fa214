//! Rounding of input rows to 8 bits.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use super::panel_rows::{BLOCK_QUADS, BLOCK_VALUES, QUAD};

/// Number of 32-bit words for a block of one row: its quads, its scale, the correction for unsigned
/// weights, and the sum of its values.
pub(super) const ROW_WORDS: usize = BLOCK_QUADS + 3;
/// Index of the scale among the words of a block.
pub(super) const SCALE_WORD: usize = BLOCK_QUADS;
/// Index of what corrects a product with unsigned weights.
pub(super) const CORRECTION_WORD: usize = BLOCK_QUADS + 1;
/// Index of the sum of the block's values.
pub(super) const VALUE_SUM_WORD: usize = BLOCK_QUADS + 2;
/// A kernel that multiplies unsigned weights adds this to each.
const WEIGHT_OFFSET: i32 = 128;
/// Largest 8-bit value that is used. −128 has no positive counterpart.
pub(super) const LARGEST: f32 = 127.;
/// A sum with this number has the rounded value in its lowest byte.
pub(super) const ROUND: f32 = 12_582_912.;
/// Blocks of smaller values count as zeros, because their factor could overflow.
pub(super) const SMALLEST: f32 = 1e-30;

/// A block of input values, rounded to signed bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundedBlock {
    /// The rounded values as signed bytes, four in each word.
    pub(super) quads: [i32; BLOCK_QUADS],
    /// The factor that restores the values. NaN if a value is not finite.
    pub(super) scale: f32,
    /// Sum of the bytes.
    pub(super) sum: i32,
}

/// Input rows, and the buffer that their rounded blocks are written to.
pub(super) struct RowRounding<'a> {
    /// The rows.
    pub(super) x: &'a [f32],
    /// Values of a row, a multiple of the size of a block.
    pub(super) columns: usize,
    /// The buffer, in the order of [`ByteRows`](super::byte_rows::ByteRows).
    pub(super) words: &'a mut [i32],
}

impl RowRounding<'_> {
    /// Rounds all blocks with a function.
    #[inline(always)]
    pub(super) fn run(self, round: impl Fn(&[f32; BLOCK_VALUES]) -> RoundedBlock) {
        let Self { x, columns, words } = self;
        let rows = x.len() / columns.max(1);
        for (row, x) in x.chunks_exact(columns.max(1)).enumerate() {
            let blocks = x.as_chunks::<BLOCK_VALUES>().0.iter();
            for (values, words) in blocks.zip(words.chunks_exact_mut(rows * ROW_WORDS)) {
                let RoundedBlock { quads, scale, sum } = round(values);
                for (words, quad) in words.chunks_exact_mut(rows).zip(quads) {
                    words[row] = quad;
                }
                words[SCALE_WORD * rows + row] = scale.to_bits().cast_signed();
                words[CORRECTION_WORD * rows + row] = -WEIGHT_OFFSET * sum;
                let value_sum = sum as f32 * scale;
                words[VALUE_SUM_WORD * rows + row] = value_sum.to_bits().cast_signed();
            }
        }
    }
}

/// Rounds a block, on any processor.
pub(super) fn round_block(values: &[f32; BLOCK_VALUES]) -> RoundedBlock {
    let largest = values.iter().map(|value| value.abs()).fold(0., f32::max);
    // Zero, or NaN if a value is not finite.
    let check: f32 = values.iter().map(|value| value * 0.).sum();
    let factor = if largest > SMALLEST { LARGEST / largest } else { 0. };
    let bytes = values.map(|value| value.mul_add(factor, ROUND).to_bits().to_le_bytes()[0]);
    let mut quads = [0; BLOCK_QUADS];
    for (quad, bytes) in quads.iter_mut().zip(bytes.as_chunks::<QUAD>().0) {
        *quad = i32::from_le_bytes(*bytes);
    }
    let sum = bytes.iter().map(|byte| i32::from(byte.cast_signed())).sum();
    RoundedBlock { quads, scale: largest / LARGEST + check, sum }
}
