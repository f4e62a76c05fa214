//! Backward pass of the attention of spans.

use std::ops::Range;

use candle::Result;

use super::forward::{multiply_with_keys, split_weights, write_products, write_weights};
use super::query_tile::QueryTile;
use super::strided_matrix::{Previous, StridedMatrix, multiply_into};
use super::token_heads::{TokenHead, TokenHeads};
use crate::reduce::sum_of_products;

/// Gradients of queries, keys and values, in their shapes.
pub(super) struct Gradients {
    pub(super) dq: Vec<f32>,
    pub(super) dk: Vec<f32>,
    pub(super) dv: Vec<f32>,
}

impl Gradients {
    /// Creates gradients of zeros.
    pub(super) fn zeros(q: &TokenHeads, k: &TokenHeads) -> Self {
        let zeros = |x: &TokenHeads| vec![0.0; x.tokens * x.token_size()];
        Self { dq: zeros(q), dk: zeros(k), dv: zeros(k) }
    }

    /// Adds the gradients of one tile.
    pub(super) fn add_tile(
        &mut self,
        [q, k, v]: [&TokenHeads; 3],
        upstream: &TokenHeads,
        tile: &QueryTile,
        scale: f32,
    ) -> Result<()> {
        let (mut weights, mut dscores) = (Vec::new(), Vec::new());
        for (q, upstream) in (0..q.heads).map(|i| (q.head(i), upstream.head(i))) {
            let (k, v) = (k.head_for_query(q), v.head_for_query(q));
            let upstream = upstream.rows(&tile.queries)?;
            write_weights(&mut weights, [q, k], tile, scale)?;
            add_to_keys(&mut self.dv, &weights, upstream, v, tile)?;
            write_products(&mut dscores, upstream, v, tile)?;
            softmax_backward(&weights, &mut dscores, tile.keys(), scale);
            let dq = self.dq.get_mut(q.offset(tile.queries.start)..).unwrap_or_default();
            multiply_with_keys(dq, q.row_stride(), &dscores, k, tile)?;
            add_to_keys(&mut self.dk, &dscores, q.rows(&tile.queries)?, k, tile)?;
        }
        Ok(())
    }
}

/// Replaces the gradients of weights by those of the scores before the softmax.
fn softmax_backward(weights: &[f32], gradients: &mut [f32], width: usize, scale: f32) {
    for (w, g) in weights.chunks_exact(width).zip(gradients.chunks_exact_mut(width)) {
        let dot = sum_of_products(w, g);
        for (g, w) in g.iter_mut().zip(w) {
            *g = w * (*g - dot) * scale;
        }
    }
}

/// Adds `weightsᵀ · rows` to the gradients of the keys or values of a tile.
fn add_to_keys(
    gradients: &mut [f32],
    weights: &[f32],
    rows: StridedMatrix,
    keys: TokenHead,
    tile: &QueryTile,
) -> Result<()> {
    let [prefix, own] = split_weights(weights, tile)?;
    let mut add = |tokens: &Range<usize>, weights: StridedMatrix| {
        let gradients = gradients.get_mut(keys.offset(tokens.start)..).unwrap_or_default();
        multiply_into(gradients, keys.row_stride(), [weights.transposed(), rows], Previous::Kept)
    };
    if !tile.prefix.is_empty() {
        add(&tile.prefix, prefix)?;
    }
    add(&tile.own, own)
}
