//! Sixteen rows of `Q4K` blocks in the order in which the kernels read them.

#![expect(clippy::inline_always, reason = "the loops of the kernels contain the accessors")]

use half::f16;
use pulp::cast;

use super::panel_rows::{PANEL_ROWS, PanelRows, QUAD, QUAD_BYTES};

/// Parts of a `Q4K` block. Each has 32 values, a scale and an offset.
pub(super) const PARTS: usize = 8;
/// Pairs of quads in a part.
pub(super) const PAIRS: usize = 4;
/// Bytes of 6-bit scales and offsets in a stored block.
const SCALE_BYTES: usize = 12;
/// First lines of the scales and of the pairs.
const SCALE_LINE: usize = 1;
const PAIR_LINE: usize = SCALE_LINE + PARTS / 2;
/// Lines of an arranged block.
const LINES: usize = PAIR_LINE + PARTS * PAIRS;

/// A block of all rows, in lines of 64 bytes:
///
/// - the factors of the scales of all rows in f16, and those of the offsets;
/// - for each part, the scales of all rows in 8 bits, and the offsets;
/// - for each part, pairs of quads of all rows: the lower four bits of a byte are a value of the first
///   quad, the upper ones of the second.
pub(super) type NibbleBlock = [[u8; QUAD_BYTES]; LINES];

/// A panel of `Q4K` blocks.
#[derive(Clone, Copy)]
pub(super) struct NibblePanel<'a> {
    pub(super) blocks: &'a [NibbleBlock],
}

/// Returns the factors of the scales and of the offsets of all rows, in f16.
#[inline(always)]
pub(super) fn factors(block: &NibbleBlock) -> [[u8; 2 * PANEL_ROWS]; 2] {
    cast(block[0])
}

/// Returns the scales and the offsets of a part.
#[inline(always)]
pub(super) fn scales(block: &NibbleBlock, part: usize) -> &[[u8; PANEL_ROWS]; 2] {
    let rows = block[SCALE_LINE..PAIR_LINE].as_flattened().as_chunks::<PANEL_ROWS>().0;
    &rows.as_chunks::<2>().0[part]
}

/// Returns a pair of quads of all rows.
#[inline(always)]
pub(super) fn pair(block: &NibbleBlock, part: usize, pair: usize) -> &[u8; QUAD_BYTES] {
    &block[PAIR_LINE + part * PAIRS + pair]
}

/// Returns the scale and the offset of a part of a row.
pub(super) fn scale_and_offset(block: &NibbleBlock, part: usize, row: usize) -> [f32; 2] {
    let (factors, scales) = (factors(block), scales(block, part));
    [0, 1].map(|i| {
        let factor = [factors[i][2 * row], factors[i][2 * row + 1]];
        f16::from_le_bytes(factor).to_f32() * f32::from(scales[i][row])
    })
}

/// Returns the two quads of a pair of a row.
pub(super) fn quads(pair: &[u8; QUAD_BYTES], row: usize) -> [[u8; QUAD]; 2] {
    let bytes: [u8; QUAD] = std::array::from_fn(|i| pair[row * QUAD + i]);
    [bytes.map(|byte| byte & 15), bytes.map(|byte| byte >> 4)]
}

impl<'a> PanelRows<'a> for NibblePanel<'a> {
    /// Factors, scales and values (`BlockQ4K` in candle's `k_quants.rs`).
    const STORED_BYTES: usize = 4 + SCALE_BYTES + 128;

    fn arranged_bytes(blocks: usize) -> usize {
        blocks * LINES * QUAD_BYTES / PANEL_ROWS
    }

    fn borrow(bytes: &'a [u8]) -> Self {
        Self { blocks: bytes.as_chunks().0.as_chunks().0 }
    }

    fn write_row(panel: &mut [u8], row: usize, blocks: &[u8]) {
        let (lines, _) = panel.as_chunks_mut::<QUAD_BYTES>();
        let targets = lines.as_chunks_mut::<LINES>().0;
        for (target, block) in targets.iter_mut().zip(blocks.chunks_exact(Self::STORED_BYTES)) {
            for i in 0..2 {
                target[0][i * 2 * PANEL_ROWS + 2 * row..][..2]
                    .copy_from_slice(&block[2 * i..2 * i + 2]);
            }
            let (packed, values) = block[4..].split_at(SCALE_BYTES);
            for part in 0..PARTS {
                let line = &mut target[SCALE_LINE + part / 2][part % 2 * 2 * PANEL_ROWS..];
                let [scale, offset] = unpack_scales(packed, part);
                line[row] = scale;
                line[PANEL_ROWS + row] = offset;
                // Two parts share 32 bytes: the lower four bits and the upper four.
                let bytes = &values[part / 2 * 32..][..32];
                let value = |i: usize| bytes[i] >> (part % 2 * 4) & 15;
                for pair in 0..PAIRS {
                    let line = &mut target[PAIR_LINE + part * PAIRS + pair];
                    for i in 0..QUAD {
                        let first = pair * 2 * QUAD + i;
                        line[row * QUAD + i] = value(first) | value(first + QUAD) << 4;
                    }
                }
            }
        }
    }

    fn read_row(&self, row: usize, values: &mut Vec<f32>) {
        for block in self.blocks {
            for part in 0..PARTS {
                let [scale, offset] = scale_and_offset(block, part, row);
                for i in 0..PAIRS {
                    let quads = quads(pair(block, part, i), row);
                    let bytes = quads.as_flattened().iter();
                    values.extend(bytes.map(|byte| f32::from(*byte) * scale - offset));
                }
            }
        }
    }
}

/// Returns the scale and the offset of a part from the bytes that store those of all parts.
fn unpack_scales(packed: &[u8], part: usize) -> [u8; 2] {
    if part < 4 {
        [packed[part] & 63, packed[part + 4] & 63]
    } else {
        let (low, first, second) = (packed[part + 4], packed[part - 4], packed[part]);
        [low & 15 | first >> 6 << 4, low >> 4 | second >> 6 << 4]
    }
}
