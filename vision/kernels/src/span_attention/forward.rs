//! Forward pass of the attention of spans.

use candle::Result;

use super::query_tile::QueryTile;
use super::strided_matrix::{Previous, StridedMatrix, multiply_into};
use super::token_heads::TokenHeads;
use crate::softmax::softmax_row;

/// Computes the attention of all tiles.
///
/// # Shapes
/// Queries `(n, h, d)`, keys and values `(n, h_kv, d)`; the result has the shape of the queries.
pub(super) fn attend_tiles(
    [q, k, v]: [&TokenHeads; 3],
    tiles: &[QueryTile],
    scale: f32,
) -> Result<Vec<f32>> {
    let mut out = vec![0.0; q.tokens * q.token_size()];
    let mut weights = Vec::new();
    for tile in tiles {
        for head in 0..q.heads {
            let key_head = head / (q.heads / k.heads);
            write_weights(&mut weights, [q, k], tile, head, scale)?;
            let start = tile.queries.start * q.token_size() + head * q.head_size;
            let out = out.get_mut(start..).unwrap_or_default();
            multiply_with_keys(out, q.token_size(), &weights, (v, key_head), tile)?;
        }
    }
    Ok(out)
}

/// Computes the attention weights of one head of a tile: a row for each query, with the keys of the
/// prefix before those of the span. They replace the content of `weights`.
pub(super) fn write_weights(
    weights: &mut Vec<f32>,
    [q, k]: [&TokenHeads; 2],
    tile: &QueryTile,
    head: usize,
    scale: f32,
) -> Result<()> {
    let queries = q.matrix(&tile.queries, head)?;
    write_products(weights, queries, (k, head / (q.heads / k.heads)), tile)?;
    for (i, row) in weights.chunks_exact_mut(tile.keys()).enumerate() {
        let (visible, later) = row.split_at_mut(tile.visible_keys(i));
        softmax_row(visible, scale);
        later.fill(0.0);
    }
    Ok(())
}

/// Multiplies rows, one for each query of a tile, by the transposed keys or values of the tile. The
/// result replaces the content of `products`.
pub(super) fn write_products(
    products: &mut Vec<f32>,
    rows: StridedMatrix,
    (keys, key_head): (&TokenHeads, usize),
    tile: &QueryTile,
) -> Result<()> {
    let width = tile.keys();
    // The products replace all values.
    products.resize(tile.queries.len() * width, 0.0);
    if !tile.prefix.is_empty() {
        let prefix = keys.matrix(&tile.prefix, key_head)?.transposed();
        multiply_into(products, width, [rows, prefix], Previous::Replaced)?;
    }
    let own = keys.matrix(&tile.own, key_head)?.transposed();
    let products = products.get_mut(tile.prefix.len()..).unwrap_or_default();
    multiply_into(products, width, [rows, own], Previous::Replaced)
}

/// Multiplies the weights of a tile by its keys or values, and writes a row of `out` for each query.
pub(super) fn multiply_with_keys(
    out: &mut [f32],
    row_stride: usize,
    weights: &[f32],
    (keys, key_head): (&TokenHeads, usize),
    tile: &QueryTile,
) -> Result<()> {
    let [prefix, own] = split_weights(weights, tile)?;
    let own_keys = keys.matrix(&tile.own, key_head)?;
    multiply_into(out, row_stride, [own, own_keys], Previous::Replaced)?;
    if tile.prefix.is_empty() {
        return Ok(());
    }
    let prefix_keys = keys.matrix(&tile.prefix, key_head)?;
    multiply_into(out, row_stride, [prefix, prefix_keys], Previous::Kept)
}

/// Returns the weights of the prefix and those of the span.
pub(super) fn split_weights<'a>(
    weights: &'a [f32],
    tile: &QueryTile,
) -> Result<[StridedMatrix<'a>; 2]> {
    let (queries, width) = (tile.queries.len(), tile.keys());
    let own = weights.get(tile.prefix.len()..).unwrap_or_default();
    Ok([
        StridedMatrix::new(weights, [queries, tile.prefix.len()], [width, 1])?,
        StridedMatrix::new(own, [queries, tile.own.len()], [width, 1])?,
    ])
}
