//! Products of matrices whose rows are not adjacent in memory.

use candle::{Result, bail};
use gemm::Parallelism;

/// Matrix whose elements are at multiples of two strides.
#[derive(Clone, Copy)]
pub(super) struct StridedMatrix<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> StridedMatrix<'a> {
    /// Borrows a matrix with these numbers and strides of rows and columns.
    ///
    /// # Errors
    /// Elements outside of `values`.
    pub(super) fn new(
        values: &'a [f32],
        [rows, columns]: [usize; 2],
        [row_stride, column_stride]: [usize; 2],
    ) -> Result<Self> {
        check_extent(values.len(), [rows, columns], [row_stride, column_stride])?;
        Ok(Self { values, rows, columns, row_stride, column_stride })
    }

    /// Exchanges rows and columns.
    pub(super) fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }
}

/// What happens to the previous values of a result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Previous {
    /// The product replaces them.
    Replaced,
    /// The product is added to them.
    Kept,
}

/// Writes `a · b` to rows of `out`, `row_stride` values apart.
///
/// # Errors
/// Shapes that do not fit each other, or rows outside of `out`.
pub(super) fn multiply_into(
    out: &mut [f32],
    row_stride: usize,
    [a, b]: [StridedMatrix; 2],
    previous: Previous,
) -> Result<()> {
    if a.columns != b.rows || row_stride < b.columns {
        bail!(
            "product of ({}, {}) and ({}, {}) in rows of {row_stride} values",
            a.rows,
            a.columns,
            b.rows,
            b.columns
        );
    }
    check_extent(out.len(), [a.rows, b.columns], [row_stride, 1])?;
    if a.columns == 0 || a.rows == 0 || b.columns == 0 {
        bail!("product of ({}, {}) and ({}, {})", a.rows, a.columns, b.rows, b.columns);
    }
    let keeps = previous == Previous::Kept;
    // Safety: `new` and `check_extent` above have checked that the last element of each matrix is
    // inside its slice, and strides are not negative, so all elements are. `out` is borrowed mutably,
    // so it overlaps with neither input, and `row_stride` is at least the number of columns, so
    // its elements are distinct. Slices have at most `isize::MAX` bytes, so the strides of matrices
    // with several rows or columns fit `isize`; those of others are not multiplied by more than 0.
    #[expect(unsafe_code, reason = "copies of the heads would take as long as their products")]
    unsafe {
        gemm::gemm(
            a.rows,
            b.columns,
            a.columns,
            out.as_mut_ptr(),
            1,
            row_stride.cast_signed(),
            keeps,
            a.values.as_ptr(),
            a.column_stride.cast_signed(),
            a.row_stride.cast_signed(),
            b.values.as_ptr(),
            b.column_stride.cast_signed(),
            b.row_stride.cast_signed(),
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
    Ok(())
}

/// Checks that the last element of a matrix is inside a slice.
fn check_extent(
    len: usize,
    [rows, columns]: [usize; 2],
    [row_stride, column_stride]: [usize; 2],
) -> Result<()> {
    let offset = |n: usize, stride: usize| n.saturating_sub(1).checked_mul(stride);
    let last = offset(rows, row_stride)
        .zip(offset(columns, column_stride))
        .and_then(|(row, column)| row.checked_add(column));
    let is_empty = rows == 0 || columns == 0;
    if !is_empty && last.is_none_or(|last| last >= len) {
        bail!("a matrix ({rows}, {columns}) does not fit {len} values");
    }
    Ok(())
}
