//! Input rows rounded to 8 bits.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use super::panel_rows::BLOCK_VALUES;
use super::row_rounding::{CORRECTION_WORD, ROW_WORDS, RowRounding, SCALE_WORD, VALUE_SUM_WORD};

/// Input rows that are multiplied together, rounded to 8 bits.
pub(super) struct ByteRows {
    /// For each block: the first quads of all rows, the second quads and so on; the bits of the
    /// scales of all rows; the corrections for unsigned weights; the bits of the sums of the values.
    pub(super) words: Vec<i32>,
    /// Number of rows.
    pub(super) rows: usize,
}

impl ByteRows {
    /// Rounds rows of `columns` values, a multiple of the size of a block, with a function.
    pub(super) fn round(x: &[f32], columns: usize, round: impl FnOnce(RowRounding<'_>)) -> Self {
        let mut words = vec![0; x.len() / BLOCK_VALUES * ROW_WORDS];
        round(RowRounding { x, columns, words: &mut words });
        Self { words, rows: x.len() / columns.max(1) }
    }

    /// Returns the number of bytes that the rounded rows take.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.words.as_slice())
    }

    /// Returns the words of each block.
    #[inline(always)]
    pub(super) fn blocks<const R: usize>(&self) -> impl Iterator<Item = BlockWords<'_, R>> {
        let words = self.words.as_chunks::<R>().0;
        words.as_chunks::<ROW_WORDS>().0.iter().map(|words| BlockWords { words })
    }
}

/// The words of a block of `R` rows.
#[derive(Clone, Copy)]
pub(super) struct BlockWords<'a, const R: usize> {
    words: &'a [[i32; R]; ROW_WORDS],
}

impl<const R: usize> BlockWords<'_, R> {
    /// Returns quads of all rows, four signed bytes each.
    #[inline(always)]
    pub(super) fn quads(self, quad: usize) -> [i32; R] {
        self.words[quad]
    }

    /// Returns the scale of a row.
    #[inline(always)]
    pub(super) fn scale(self, row: usize) -> f32 {
        f32::from_bits(self.words[SCALE_WORD][row].cast_unsigned())
    }

    /// Returns what has to be added to a product of a row if 128 was added to each weight: −128 times the
    /// sum of the bytes of the row.
    #[inline(always)]
    pub(super) fn correction(self, row: usize) -> i32 {
        self.words[CORRECTION_WORD][row]
    }

    /// Returns the sum of the values of a row.
    #[inline(always)]
    pub(super) fn value_sum(self, row: usize) -> f32 {
        f32::from_bits(self.words[VALUE_SUM_WORD][row].cast_unsigned())
    }
}
