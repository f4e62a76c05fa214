//! Sixteen rows of a quantised weight in the order in which the kernels read them.

/// Rows of a panel.
pub(crate) const PANEL_ROWS: usize = 16;
/// Input values that share a scale.
pub(super) const BLOCK_VALUES: usize = 32;
/// Consecutive values of a row that are multiplied in one lane.
pub(super) const QUAD: usize = 4;
/// Quads of a block.
pub(super) const BLOCK_QUADS: usize = BLOCK_VALUES / QUAD;
/// Bytes of one quad of all rows of a panel.
pub(super) const QUAD_BYTES: usize = PANEL_ROWS * QUAD;

/// A panel of one type of blocks.
pub(super) trait PanelRows<'a>: Copy {
    /// Bytes of a stored block.
    const STORED_BYTES: usize;

    /// Returns the bytes of a row of arranged blocks, which a panel has for each of its rows.
    fn arranged_bytes(blocks: usize) -> usize;

    /// Borrows the bytes of a panel.
    fn borrow(bytes: &'a [u8]) -> Self;

    /// Copies the stored blocks of a row to its place in a panel.
    fn write_row(panel: &mut [u8], row: usize, blocks: &[u8]);

    /// Converts a row to f32, with zeros after it if the last block is padding.
    fn read_row(&self, row: usize, values: &mut Vec<f32>);
}
