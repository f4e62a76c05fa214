//! Sixteen rows of `Q8_0` blocks in the order in which the kernels read them.

use super::panel_rows::{BLOCK_QUADS, BLOCK_VALUES, PANEL_ROWS, PanelRows, QUAD, QUAD_BYTES};

/// Bytes of the scales of one block of all rows.
pub(super) const SCALE_BYTES: usize = PANEL_ROWS * 2;

/// A panel of `Q8_0` blocks: the scales of all blocks, then the values. The rows are interleaved: the
/// 16 scales of a block are adjacent, and so are the quads of all rows at the same columns.
#[derive(Clone, Copy)]
pub(super) struct BytePanel<'a> {
    /// For each block, the scales of all rows in f16.
    pub(super) scales: &'a [[u8; SCALE_BYTES]],
    /// For each block, [`BLOCK_QUADS`] quads of all rows.
    pub(super) quads: &'a [[[u8; QUAD_BYTES]; BLOCK_QUADS]],
}

impl BytePanel<'_> {
    /// Returns the scale of a block.
    pub(super) fn scale(&self, block: usize, row: usize) -> f32 {
        let scales = &self.scales[block];
        half::f16::from_le_bytes([scales[row * 2], scales[row * 2 + 1]]).to_f32()
    }

    /// Returns a quad.
    pub(super) fn quad(&self, block: usize, quad: usize, row: usize) -> [i8; QUAD] {
        let quads = &self.quads[block][quad];
        std::array::from_fn(|i| quads[row * QUAD + i].cast_signed())
    }
}

impl<'a> PanelRows<'a> for BytePanel<'a> {
    const STORED_BYTES: usize = 2 + BLOCK_VALUES;
    const ARRANGED_BYTES: usize = 2 + BLOCK_VALUES;

    fn borrow(bytes: &'a [u8]) -> Self {
        let blocks = bytes.len() / (Self::ARRANGED_BYTES * PANEL_ROWS);
        let (scales, quads) = bytes.split_at(blocks * SCALE_BYTES);
        let (quads, _) = quads.as_chunks::<QUAD_BYTES>();
        Self { scales: scales.as_chunks().0, quads: quads.as_chunks().0 }
    }

    fn write_row(panel: &mut [u8], row: usize, blocks: &[u8]) {
        let count = blocks.len() / Self::STORED_BYTES;
        let (scales, quads) = panel.split_at_mut(count * SCALE_BYTES);
        for (block, bytes) in blocks.chunks_exact(Self::STORED_BYTES).enumerate() {
            scales[block * SCALE_BYTES + row * 2..][..2].copy_from_slice(&bytes[..2]);
            let quads = &mut quads[block * BLOCK_QUADS * QUAD_BYTES..];
            for (quad, bytes) in bytes[2..].as_chunks::<QUAD>().0.iter().enumerate() {
                quads[quad * QUAD_BYTES + row * QUAD..][..QUAD].copy_from_slice(bytes);
            }
        }
    }

    fn read_row(&self, row: usize, values: &mut Vec<f32>) {
        for block in 0..self.scales.len() {
            let scale = self.scale(block, row);
            for quad in 0..BLOCK_QUADS {
                values.extend(self.quad(block, quad, row).map(|value| f32::from(value) * scale));
            }
        }
    }
}
