//! Sixteen rows of `Q8_0` blocks in the order in which the kernels read them.

#![expect(clippy::inline_always, reason = "the loops of the kernels contain the accessors")]

use super::panel_rows::{BLOCK_QUADS, BLOCK_VALUES, PANEL_ROWS, PanelRows, QUAD, QUAD_BYTES};

/// Bytes of the scales of one block of all rows.
const SCALE_BYTES: usize = PANEL_ROWS * 2;
/// Cache lines of a pair of blocks.
const LINES: usize = 1 + PAIR * BLOCK_QUADS;
/// Blocks of a pair. Their scales fill a line.
const PAIR: usize = QUAD_BYTES / SCALE_BYTES;

/// Two consecutive blocks of all rows, in lines of 64 bytes: the scales of both in f16, the quads of the
/// first block, then those of the second.
pub(super) type BytePair = [[u8; QUAD_BYTES]; LINES];

/// A panel of `Q8_0` blocks. Products read it from start to end, so the hardware prefetcher works. If the
/// number of blocks is odd, a block of zeros completes the last pair.
#[derive(Clone, Copy)]
pub(super) struct BytePanel<'a> {
    pub(super) pairs: &'a [BytePair],
}

/// A block of all rows.
#[derive(Clone, Copy)]
pub(super) struct ByteBlock<'a> {
    /// Scales in f16.
    pub(super) scales: &'a [u8; SCALE_BYTES],
    /// [`BLOCK_QUADS`] quads of all rows.
    pub(super) quads: &'a [[u8; QUAD_BYTES]],
}

impl<'a> BytePanel<'a> {
    /// Returns a block.
    #[inline(always)]
    pub(super) fn block(&self, index: usize) -> ByteBlock<'a> {
        let [scales, quads @ ..] = &self.pairs[index / PAIR];
        let place = index % PAIR;
        ByteBlock {
            scales: &scales.as_chunks().0[place],
            quads: &quads[place * BLOCK_QUADS..(place + 1) * BLOCK_QUADS],
        }
    }
}

impl ByteBlock<'_> {
    /// Returns the scale of a row.
    pub(super) fn scale(&self, row: usize) -> f32 {
        half::f16::from_le_bytes([self.scales[row * 2], self.scales[row * 2 + 1]]).to_f32()
    }

    /// Returns a quad of a row.
    pub(super) fn quad(&self, quad: usize, row: usize) -> [i8; QUAD] {
        let quads = &self.quads[quad];
        std::array::from_fn(|i| quads[row * QUAD + i].cast_signed())
    }
}

impl<'a> PanelRows<'a> for BytePanel<'a> {
    const STORED_BYTES: usize = 2 + BLOCK_VALUES;

    fn arranged_bytes(blocks: usize) -> usize {
        blocks.div_ceil(PAIR) * LINES * QUAD_BYTES / PANEL_ROWS
    }

    fn borrow(bytes: &'a [u8]) -> Self {
        Self { pairs: bytes.as_chunks().0.as_chunks().0 }
    }

    fn write_row(panel: &mut [u8], row: usize, blocks: &[u8]) {
        let (lines, _) = panel.as_chunks_mut::<QUAD_BYTES>();
        let pairs = lines.as_chunks_mut::<LINES>().0;
        for (i, block) in blocks.chunks_exact(Self::STORED_BYTES).enumerate() {
            let [scales, quads @ ..] = &mut pairs[i / PAIR];
            let place = i % PAIR;
            scales[place * SCALE_BYTES + row * 2..][..2].copy_from_slice(&block[..2]);
            let quads = &mut quads[place * BLOCK_QUADS..];
            for (line, quad) in quads.iter_mut().zip(block[2..].as_chunks::<QUAD>().0) {
                line[row * QUAD..][..QUAD].copy_from_slice(quad);
            }
        }
    }

    fn read_row(&self, row: usize, values: &mut Vec<f32>) {
        for index in 0..self.pairs.len() * PAIR {
            let block = self.block(index);
            let scale = block.scale(row);
            for quad in 0..BLOCK_QUADS {
                values.extend(block.quad(quad, row).map(|value| f32::from(value) * scale));
            }
        }
    }
}
