//! Backward pass of the attention of spans.

use std::ops::Range;

use candle::Result;

use super::forward::{multiply_with_keys, split_weights, write_products, write_weights};
use super::query_tile::QueryTile;
use super::strided_matrix::{Previous, StridedMatrix, multiply_into};
use super::token_heads::TokenHeads;
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
        for head in 0..q.heads {
            let key_head = head / (q.heads / k.heads);
            let dout = upstream.matrix(&tile.queries, head)?;
            write_weights(&mut weights, [q, k], tile, head, scale)?;
            add_to_keys(&mut self.dv, &weights, dout, (v, key_head), tile)?;
            write_products(&mut dscores, dout, (v, key_head), tile)?;
            softmax_backward(&weights, &mut dscores, tile.keys(), scale);
            let start = tile.queries.start * q.token_size() + head * q.head_size;
            let dq = self.dq.get_mut(start..).unwrap_or_default();
            multiply_with_keys(dq, q.token_size(), &dscores, (k, key_head), tile)?;
            let queries = q.matrix(&tile.queries, head)?;
            add_to_keys(&mut self.dk, &dscores, queries, (k, key_head), tile)?;
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
    (keys, key_head): (&TokenHeads, usize),
    tile: &QueryTile,
) -> Result<()> {
    let [prefix, own] = split_weights(weights, tile)?;
    let mut add = |tokens: &Range<usize>, weights: StridedMatrix| {
        let start = tokens.start * keys.token_size() + key_head * keys.head_size;
        let gradients = gradients.get_mut(start..).unwrap_or_default();
        multiply_into(gradients, keys.token_size(), [weights.transposed(), rows], Previous::Kept)
    };
    if !tile.prefix.is_empty() {
        add(&tile.prefix, prefix)?;
    }
    add(&tile.own, own)
}
