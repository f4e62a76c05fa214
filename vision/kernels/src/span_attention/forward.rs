//! Forward pass of the attention of spans.

use candle::Result;

use super::query_tile::QueryTile;
use super::strided_matrix::{Previous, StridedMatrix, multiply_into};
use super::token_heads::{TokenHead, TokenHeads};
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
        for q in (0..q.heads).map(|i| q.head(i)) {
            write_weights(&mut weights, [q, k.head_for_query(q)], tile, scale)?;
            let out = out.get_mut(q.offset(tile.queries.start)..).unwrap_or_default();
            multiply_with_keys(out, q.row_stride(), &weights, v.head_for_query(q), tile)?;
        }
    }
    Ok(out)
}

/// Overwrites `weights` with the attention weights of one head of a tile. Each query has a row; the keys
/// of the prefix come before those of the span.
pub(super) fn write_weights(
    weights: &mut Vec<f32>,
    [q, k]: [TokenHead; 2],
    tile: &QueryTile,
    scale: f32,
) -> Result<()> {
    write_products(weights, q.rows(&tile.queries)?, k, tile)?;
    for (i, row) in weights.chunks_exact_mut(tile.keys()).enumerate() {
        let (visible, later) = row.split_at_mut(tile.visible_keys(i));
        softmax_row(visible, scale);
        later.fill(0.0);
    }
    Ok(())
}

/// Overwrites `products` with the product of `rows` (one per query of the tile) and the transposed keys
/// or values of the tile.
pub(super) fn write_products(
    products: &mut Vec<f32>,
    rows: StridedMatrix,
    keys: TokenHead,
    tile: &QueryTile,
) -> Result<()> {
    let width = tile.keys();
    // The products replace all values.
    products.resize(tile.queries.len() * width, 0.0);
    if !tile.prefix.is_empty() {
        let prefix = keys.rows(&tile.prefix)?.transposed();
        multiply_into(products, width, [rows, prefix], Previous::Replaced)?;
    }
    let own = keys.rows(&tile.own)?.transposed();
    let products = products.get_mut(tile.prefix.len()..).unwrap_or_default();
    multiply_into(products, width, [rows, own], Previous::Replaced)
}

/// Multiplies the weights of a tile by its keys or values, and writes a row of `out` for each query.
pub(super) fn multiply_with_keys(
    out: &mut [f32],
    row_stride: usize,
    weights: &[f32],
    keys: TokenHead,
    tile: &QueryTile,
) -> Result<()> {
    let [prefix, own] = split_weights(weights, tile)?;
    let own_keys = keys.rows(&tile.own)?;
    multiply_into(out, row_stride, [own, own_keys], Previous::Replaced)?;
    if tile.prefix.is_empty() {
        return Ok(());
    }
    let prefix_keys = keys.rows(&tile.prefix)?;
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
