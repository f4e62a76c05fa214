//! Queries of a span that are computed together.

use std::ops::Range;

use super::causal_span::CausalSpan;

/// Largest number of queries of a tile. Longer tiles compute more scores of later tokens, which have
/// no weight; shorter ones make small products.
const TILE_QUERIES: usize = 64;

/// Consecutive queries of a span with the keys that at least one of them attends to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct QueryTile {
    /// Rows of the queries.
    pub(super) queries: Range<usize>,
    /// Rows of the keys of the prefix.
    pub(super) prefix: Range<usize>,
    /// Rows of the keys of the span, up to the last query.
    pub(super) own: Range<usize>,
}

impl QueryTile {
    /// Returns the number of keys.
    pub(super) fn keys(&self) -> usize {
        self.prefix.len() + self.own.len()
    }

    /// Returns the number of keys that the query with an index in the tile attends to. They are the
    /// first ones.
    pub(super) fn visible_keys(&self, query: usize) -> usize {
        self.prefix.len() + (self.queries.start - self.own.start) + query + 1
    }
}

/// Divides spans into tiles.
pub(super) fn query_tiles(spans: &[CausalSpan]) -> Vec<QueryTile> {
    let tiles_of = |span: &CausalSpan| {
        let CausalSpan { prefix, tokens } = span.clone();
        tokens.clone().step_by(TILE_QUERIES).map(move |start| {
            let end = tokens.end.min(start + TILE_QUERIES);
            QueryTile { queries: start..end, prefix: prefix.clone(), own: tokens.start..end }
        })
    };
    spans.iter().flat_map(tiles_of).collect()
}
