//! The kernel without vector instructions. It defines the results of the others.

use super::byte_panels::BytePanel;
use super::byte_rows::{BlockWords, ByteRows};
use super::kernel::{Kernel, PanelProducts};
use super::nibble_panels::{NibblePanel, PARTS, pair, quads, scale_and_offset};
use super::panel_rows::{BLOCK_QUADS, PANEL_ROWS, QUAD};
use super::row_rounding::{RowRounding, round_block};

/// Multiplies on any processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Portable;

impl Kernel for Portable {
    const MAX_ROWS: usize = 4;

    fn round_rows(self, rounding: RowRounding<'_>) {
        rounding.run(round_block);
    }

    fn multiply_bytes<const R: usize>(
        self,
        x: &ByteRows,
        panel: BytePanel<'_>,
    ) -> [PanelProducts; R] {
        let mut sums = [[0.; PANEL_ROWS]; R];
        for (i, words) in x.blocks::<R>().enumerate() {
            let block = panel.block(i);
            for (r, sums) in sums.iter_mut().enumerate() {
                for (row, sum) in sums.iter_mut().enumerate() {
                    let weights = |quad| block.quad(quad, row).map(i32::from);
                    let scaled = multiply_block(words, r, weights) as f32 * words.scale(r);
                    *sum = scaled.mul_add(block.scale(row), *sum);
                }
            }
        }
        sums
    }

    fn multiply_nibbles<const R: usize>(
        self,
        x: &ByteRows,
        panel: NibblePanel<'_>,
    ) -> [PanelProducts; R] {
        let mut sums = [[0.; PANEL_ROWS]; R];
        for (i, words) in x.blocks::<R>().enumerate() {
            let (block, part) = (&panel.blocks[i / PARTS], i % PARTS);
            for (r, sums) in sums.iter_mut().enumerate() {
                for (row, sum) in sums.iter_mut().enumerate() {
                    let weights = |quad: usize| {
                        quads(pair(block, part, quad / 2), row)[quad % 2].map(i32::from)
                    };
                    let [scale, offset] = scale_and_offset(block, part, row);
                    let scaled = multiply_block(words, r, weights) as f32 * words.scale(r);
                    *sum = scaled.mul_add(scale, *sum);
                    *sum = (-words.value_sum(r)).mul_add(offset, *sum);
                }
            }
        }
        sums
    }
}

/// Multiplies a block of an input row with the quads of a weight block.
fn multiply_block<const R: usize>(
    words: BlockWords<'_, R>,
    r: usize,
    weights: impl Fn(usize) -> [i32; QUAD],
) -> i32 {
    let products = (0..BLOCK_QUADS).map(|quad| {
        let x = words.quads(quad)[r].to_le_bytes().map(|byte| i32::from(byte.cast_signed()));
        x.iter().zip(weights(quad)).map(|(x, w)| x * w).sum::<i32>()
    });
    products.sum()
}
