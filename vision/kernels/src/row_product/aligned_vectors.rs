//! Vectors that begin at the start of a cache line.

use super::stored_values::LANES;

/// Values of a cache line.
const LINE_VALUES: usize = 16;

/// Vectors in memory. A register never needs two cache lines.
pub(crate) struct AlignedVectors {
    values: Vec<f32>,
    /// Position of the first value, at the start of a line.
    start: usize,
    /// Number of values.
    len: usize,
}

impl AlignedVectors {
    /// Creates vectors of zeros.
    pub(crate) fn zeros(count: usize) -> Self {
        let len = count * LANES;
        let values = vec![0f32; len + LINE_VALUES];
        let line_bytes = LINE_VALUES * size_of::<f32>();
        // Usually below the length of a line; larger if the address is unknown.
        let start = values.as_ptr().align_offset(line_bytes).min(LINE_VALUES);
        Self { values, start, len }
    }

    /// Returns the vectors.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "vector instructions need to be part of the function that enables them"
    )]
    pub(crate) fn as_slice(&self) -> &[[f32; LANES]] {
        self.values[self.start..][..self.len].as_chunks().0
    }

    /// Returns the vectors.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [[f32; LANES]] {
        self.values[self.start..][..self.len].as_chunks_mut().0
    }
}
