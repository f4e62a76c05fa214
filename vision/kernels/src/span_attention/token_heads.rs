//! Heads of the tokens of a tensor.

use std::ops::Range;

use candle::{Result, Shape, bail};

use super::strided_matrix::StridedMatrix;

/// Values of a tensor of shape `(n, heads, d)`.
#[derive(Clone, Copy)]
pub(super) struct TokenHeads<'a> {
    values: &'a [f32],
    /// Number of tokens (`n`).
    pub(super) tokens: usize,
    /// Number of heads.
    pub(super) heads: usize,
    /// Number of values of a head (`d`).
    pub(super) head_size: usize,
}

impl<'a> TokenHeads<'a> {
    /// Borrows the values of a contiguous tensor.
    pub(super) fn new(values: &'a [f32], shape: &Shape) -> Result<Self> {
        let (tokens, heads, head_size) = shape.dims3()?;
        if values.len() != tokens * heads * head_size {
            bail!("{} values for shape {shape:?}", values.len());
        }
        Ok(Self { values, tokens, heads, head_size })
    }

    /// Returns the number of values of all heads of a token.
    pub(super) fn token_size(&self) -> usize {
        self.heads * self.head_size
    }

    /// Returns the values of one head of consecutive tokens: a row for each token.
    pub(super) fn matrix(&self, tokens: &Range<usize>, head: usize) -> Result<StridedMatrix<'a>> {
        let start = tokens.start * self.token_size() + head * self.head_size;
        StridedMatrix::new(
            self.values.get(start..).unwrap_or_default(),
            [tokens.len(), self.head_size],
            [self.token_size(), 1],
        )
    }
}
