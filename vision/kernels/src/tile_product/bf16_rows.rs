//! A weight in bf16 in memory.

/// A weight in bf16, row by row.
#[derive(Clone, Copy)]
pub(super) struct Bf16Rows<'a> {
    /// The bits of the values.
    pub(super) values: &'a [u16],
    /// Number of rows.
    pub(super) rows: usize,
    /// Values of a row, at least one.
    pub(super) columns: usize,
}
