//! Inputs as tiles.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use pulp::x86::V4;
use pulp::{Simd, WithSimd};

use super::rounding::{round_groups, round_input};
use super::tile_unit::GROUPS;
use super::tile_weights::{BLOCK_COLUMNS, CHUNK_COLUMNS, PASSES, blocks, split_passes};
use super::tile_words::{TILE_ROWS, TileWords};
use super::transpose::transpose;

/// Input rows that are multiplied together.
pub(super) const INPUT_ROWS: usize = TILE_ROWS * GROUPS;

/// Input rows rounded to bf16, in tiles: chunk by chunk, and in each chunk group by group and pass by
/// pass. The tiles are transposed: their columns are rows of the input.
pub(super) struct TileInput {
    tiles: Vec<TileWords>,
    /// Groups of 16 rows, an even number. The last rows may be zeros.
    groups: usize,
    columns: usize,
}

impl TileInput {
    /// Rounds rows of `columns` values.
    pub(super) fn round(simd: V4, x: &[f32], columns: usize) -> Self {
        let groups = (x.len() / columns).div_ceil(INPUT_ROWS) * GROUPS;
        let tiles = vec![TileWords::ZERO; groups * blocks(columns) * PASSES];
        let group_values = TILE_ROWS * columns;
        let mut input = Self { tiles, groups, columns };
        for start in (0..columns).step_by(CHUNK_COLUMNS) {
            let chunk = start..(start + CHUNK_COLUMNS).min(columns);
            let first = input.group_range(0, start);
            let tiles = &mut input.tiles[first.start..first.start + groups * first.len()];
            round_groups(x, tiles, [group_values, first.len()], |tiles, rows| {
                let chunk = chunk.clone();
                Simd::vectorize(simd, GroupRounding { simd, rows, columns, chunk, tiles });
            });
        }
        input
    }

    /// Returns the number of pairs of groups.
    pub(super) fn pairs(&self) -> usize {
        self.groups / GROUPS
    }

    /// Returns the tiles of a group for the chunk that begins at a column.
    pub(super) fn group(&self, group: usize, start: usize) -> &[TileWords] {
        &self.tiles[self.group_range(group, start)]
    }

    /// Returns the place of the tiles of a group for the chunk that begins at a column.
    fn group_range(&self, group: usize, start: usize) -> Range<usize> {
        let len = blocks(self.columns.min(start + CHUNK_COLUMNS) - start) * PASSES;
        let first = blocks(start) * PASSES * self.groups + group * len;
        first..first + len
    }
}

/// The rounding of a chunk of up to 16 rows.
struct GroupRounding<'a> {
    simd: V4,
    rows: &'a [f32],
    columns: usize,
    chunk: Range<usize>,
    tiles: &'a mut [TileWords],
}

impl WithSimd for GroupRounding<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { simd, rows, columns, chunk, tiles } = self;
        let count = tiles.len() / PASSES;
        for (block, start) in chunk.clone().step_by(BLOCK_COLUMNS).enumerate() {
            let place = start..(start + BLOCK_COLUMNS).min(chunk.end);
            let mut passes = [TileWords::ZERO; PASSES];
            for (r, row) in rows.chunks_exact(columns).enumerate() {
                let mut values = [0; BLOCK_COLUMNS];
                for (value, x) in values.iter_mut().zip(&row[place.clone()]) {
                    *value = round_input(*x);
                }
                for (tile, words) in passes.iter_mut().zip(split_passes(simd, &values)) {
                    tile.0[r] = words;
                }
            }
            for (pass, tile) in passes.iter().enumerate() {
                tiles[pass * count + block] = transpose(simd, tile);
            }
        }
    }
}
