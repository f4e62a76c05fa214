//! Input rows rounded to 8 bits.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use pulp::{Arch, Simd, WithSimd};

use super::panel_rows::{BLOCK_QUADS, BLOCK_VALUES, QUAD};

/// Words of a block of one row: its quads, its scale, and the sum of its values.
const ROW_WORDS: usize = BLOCK_QUADS + 2;
/// Largest 8-bit value that is used. −128 has no positive counterpart.
const LARGEST: f32 = 127.;

/// Input rows that are multiplied together, rounded to 8 bits.
pub(super) struct ByteRows {
    /// For each block: the first quads of all rows, the second quads and so on; the bits of the
    /// scales of all rows; the sums of the values of all rows.
    pub(super) words: Vec<i32>,
    /// Number of rows.
    pub(super) rows: usize,
}

impl ByteRows {
    /// Rounds rows of `columns` values, a multiple of the size of a block.
    pub(super) fn round(x: &[f32], columns: usize) -> Self {
        let rows = x.len() / columns.max(1);
        let mut words = vec![0; x.len() / BLOCK_VALUES * ROW_WORDS];
        Arch::new().dispatch(Rounding { x, columns, rows, words: &mut words });
        Self { words, rows }
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
        f32::from_bits(self.words[BLOCK_QUADS][row].cast_unsigned())
    }

    /// Returns the sum of the values of a row.
    #[inline(always)]
    pub(super) fn sum(self, row: usize) -> i32 {
        self.words[BLOCK_QUADS + 1][row]
    }
}

/// The computation, as a type that the vector instructions of the processor are enabled for.
struct Rounding<'a> {
    x: &'a [f32],
    columns: usize,
    rows: usize,
    words: &'a mut [i32],
}

impl WithSimd for Rounding<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { x, columns, rows, words } = self;
        for (row, x) in x.chunks_exact(columns).enumerate() {
            let blocks = x.as_chunks::<BLOCK_VALUES>().0.iter();
            for (values, words) in blocks.zip(words.chunks_exact_mut(rows * ROW_WORDS)) {
                let (bytes, scale) = round_block(values);
                for (quad, bytes) in bytes.as_chunks::<QUAD>().0.iter().enumerate() {
                    words[quad * rows + row] = i32::from_le_bytes(*bytes);
                }
                words[BLOCK_QUADS * rows + row] = scale.to_bits().cast_signed();
                let sum: i32 = bytes.iter().map(|byte| i32::from(byte.cast_signed())).sum();
                words[(BLOCK_QUADS + 1) * rows + row] = sum;
            }
        }
    }
}

/// Rounds values to signed bytes. Returns the bytes and the factor that restores the values, which
/// is NaN if a value is not finite.
#[inline(always)]
fn round_block(values: &[f32; BLOCK_VALUES]) -> ([u8; BLOCK_VALUES], f32) {
    /// A sum with this number has the rounded value in its lowest byte.
    const ROUND: f32 = 12_582_912.;
    /// Blocks of smaller values count as zeros, because their factor could overflow.
    const SMALLEST: f32 = 1e-30;
    let mut largest = [0f32; 8];
    let mut check = [0f32; 8];
    for values in values.as_chunks::<8>().0 {
        for lane in 0..8 {
            let size = values[lane].abs();
            if size > largest[lane] {
                largest[lane] = size;
            }
            // Zero, or NaN for a value that is not finite.
            check[lane] += size * 0.;
        }
    }
    let largest = largest.into_iter().fold(0., f32::max);
    let factor = if largest > SMALLEST { LARGEST / largest } else { 0. };
    let bytes = values.map(|value| (value.mul_add(factor, ROUND)).to_bits().to_le_bytes()[0]);
    (bytes, largest / LARGEST + check.iter().sum::<f32>())
}
