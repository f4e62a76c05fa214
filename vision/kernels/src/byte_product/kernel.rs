//! What a kernel computes.

use super::byte_panels::BytePanel;
use super::byte_rows::ByteRows;
use super::nibble_panels::NibblePanel;
use super::panel_rows::PANEL_ROWS;
use super::row_rounding::RowRounding;

/// Products of an input row with the rows of a panel.
pub(super) type PanelProducts = [f32; PANEL_ROWS];

/// Instructions that multiply blocks. All kernels give equal results.
pub(super) trait Kernel: Copy + Send + Sync {
    /// Input rows that are multiplied together, at most eight.
    const MAX_ROWS: usize;

    /// Rounds input rows to 8 bits.
    fn round_rows(self, rounding: RowRounding<'_>);

    /// Rounds input rows of `columns` values, a multiple of the size of a block.
    fn round(self, x: &[f32], columns: usize) -> ByteRows {
        ByteRows::round(x, columns, |rounding| self.round_rows(rounding))
    }

    /// Multiplies `R` rows with a panel of `Q8_0` blocks.
    fn multiply_bytes<const R: usize>(
        self,
        x: &ByteRows,
        panel: BytePanel<'_>,
    ) -> [PanelProducts; R];

    /// Does the same with a panel of `Q4K` blocks.
    fn multiply_nibbles<const R: usize>(
        self,
        x: &ByteRows,
        panel: NibblePanel<'_>,
    ) -> [PanelProducts; R];
}
