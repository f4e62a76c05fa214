//! Rows of values that begin at the start of a cache line.

/// Values of a cache line.
const LINE_VALUES: usize = 16;

/// Rows of `N` values in memory. `N` divides the values of a cache line or is a multiple of them, so
/// loading a vector touches one line, not two.
#[derive(Debug)]
pub(crate) struct AlignedRows<const N: usize> {
    values: Vec<f32>,
    /// Position of the first value, at the start of a line.
    start: usize,
    /// Number of values.
    len: usize,
}

impl<const N: usize> AlignedRows<N> {
    /// Creates rows of zeros.
    pub(crate) fn zeros(count: usize) -> Self {
        const { assert!(LINE_VALUES.is_multiple_of(N) || N.is_multiple_of(LINE_VALUES)) };
        let len = count * N;
        let values = vec![0f32; len + LINE_VALUES];
        // Below the length of a line, unless the address is unknown.
        let start = values.as_ptr().align_offset(LINE_VALUES * size_of::<f32>()).min(LINE_VALUES);
        Self { values, start, len }
    }

    /// Returns the rows.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "vector instructions need to be part of the function that enables them"
    )]
    pub(crate) fn as_slice(&self) -> &[[f32; N]] {
        self.values[self.start..][..self.len].as_chunks().0
    }

    /// Returns the rows.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [[f32; N]] {
        self.values[self.start..][..self.len].as_chunks_mut().0
    }
}

impl<const N: usize> Clone for AlignedRows<N> {
    fn clone(&self) -> Self {
        let mut rows = Self::zeros(self.len / N);
        rows.as_mut_slice().copy_from_slice(self.as_slice());
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_their_copies_begin_with_a_line() {
        for count in [0, 1, 7, 4096] {
            let mut rows = AlignedRows::<8>::zeros(count);
            rows.as_mut_slice().iter_mut().for_each(|row| *row = [2.5; 8]);
            let copy = rows.clone();
            for rows in [&rows, &copy] {
                assert_eq!(rows.as_slice(), vec![[2.5; 8]; count]);
                assert_eq!(rows.as_slice().as_ptr().addr() % 64, 0);
            }
        }
    }
}
