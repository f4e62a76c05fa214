//! Rows of a weight matrix in their stored type.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use super::stored_values::{LANES, StoredValues};

/// A weight matrix, row by row.
pub(crate) struct WeightRows<'a, V: StoredValues> {
    elements: &'a [V::Element],
    /// Number of rows.
    pub(crate) rows: usize,
    /// Values of a row.
    pub(crate) columns: usize,
}

impl<V: StoredValues> Clone for WeightRows<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V: StoredValues> Copy for WeightRows<'_, V> {}

impl<'a, V: StoredValues> WeightRows<'a, V> {
    /// Borrows the elements of a matrix. `None` if their number does not match.
    pub(crate) fn borrow(elements: &'a [V::Element], rows: usize, columns: usize) -> Option<Self> {
        let matches = elements.len() == rows * element_count::<V>(columns);
        matches.then_some(Self { elements, rows, columns })
    }

    /// Returns the size of a row.
    #[inline(always)]
    pub(crate) fn row_bytes(&self) -> usize {
        element_count::<V>(self.columns) * size_of::<V::Element>()
    }

    /// Returns the elements of some rows.
    pub(crate) fn elements_of_rows(&self, rows: Range<usize>) -> &'a [V::Element] {
        let row = element_count::<V>(self.columns);
        &self.elements[rows.start * row..rows.end * row]
    }

    /// Returns the elements of some columns of a row. The last row stands for the rows after it.
    /// The first column is the start of a block.
    #[inline(always)]
    pub(crate) fn part_of_row(&self, row: usize, columns: &Range<usize>) -> &'a [V::Element] {
        let row = row.min(self.rows - 1) * element_count::<V>(self.columns);
        let [start, end] = [columns.start, columns.end].map(element_count::<V>);
        &self.elements[row + start..row + end]
    }
}

/// Prefetches the memory some bytes after a block, usually of a later row.
///
/// With few input rows, memory bandwidth limits the product. The hardware prefetcher restarts at each
/// row, so it leaves a part of the bandwidth unused.
#[inline(always)]
pub(crate) fn prefetch<T>(block: &T, bytes: usize) {
    prefetch_address(std::ptr::from_ref(block).cast::<i8>().wrapping_add(bytes));
}

/// Prefetches the memory at an address.
#[inline(always)]
pub(crate) fn prefetch_address(address: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    // SAFETY: A prefetch has no effect on the program, whatever the address. SSE is part of x86-64.
    #[expect(unsafe_code, reason = "products with one row take a fifth less time in f32")]
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(address);
    }
}

/// Prefetches the lines of `len` bytes, some bytes after a block.
#[inline(always)]
pub(crate) fn prefetch_bytes<T>(block: &T, bytes: usize, len: usize) {
    /// Bytes of a cache line.
    const LINE: usize = 64;
    for line in (0..len).step_by(LINE) {
        prefetch(block, bytes + line);
    }
}

/// Returns the number of elements that store this many values.
#[inline(always)]
fn element_count<V: StoredValues>(values: usize) -> usize {
    let block_values = V::PARTS * V::PART_VECTORS * LANES;
    if V::BLOCK_ELEMENTS == block_values {
        return values;
    }
    values / block_values * V::BLOCK_ELEMENTS
}
