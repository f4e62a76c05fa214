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

    /// Returns one head of all tokens.
    pub(super) fn head(&self, index: usize) -> TokenHead<'a> {
        TokenHead { heads: *self, index }
    }

    /// Returns the head of these keys or values that a head of the queries attends to.
    pub(super) fn head_for_query(&self, query_head: TokenHead) -> TokenHead<'a> {
        self.head(query_head.index / (query_head.heads.heads / self.heads))
    }
}

/// One head of the tokens of a tensor.
#[derive(Clone, Copy)]
pub(super) struct TokenHead<'a> {
    heads: TokenHeads<'a>,
    index: usize,
}

impl<'a> TokenHead<'a> {
    /// Returns the values of consecutive tokens: a row for each token.
    pub(super) fn rows(&self, tokens: &Range<usize>) -> Result<StridedMatrix<'a>> {
        StridedMatrix::new(
            self.heads.values.get(self.offset(tokens.start)..).unwrap_or_default(),
            [tokens.len(), self.heads.head_size],
            [self.row_stride(), 1],
        )
    }

    /// Returns the index of the first value of a token in the tensor.
    pub(super) fn offset(&self, token: usize) -> usize {
        token * self.row_stride() + self.index * self.heads.head_size
    }

    /// Returns the distance between the values of a token and those of the next one.
    pub(super) fn row_stride(&self) -> usize {
        self.heads.token_size()
    }
}
