//! Inputs as tiles.

use super::round_input;
use super::tile::{TILE_ROWS, Tile};
use super::tile_unit::GROUPS;
use super::tile_weights::{BLOCK_COLUMNS, CHUNK_COLUMNS, PASSES, blocks, split_passes};
use super::transpose::transpose;

/// Input rows that are multiplied together.
pub(super) const INPUT_ROWS: usize = TILE_ROWS * GROUPS;

/// Input rows rounded to bf16, in tiles: chunk by chunk, and in each chunk group by group and pass by
/// pass. The tiles are transposed: their columns are rows of the input.
pub(super) struct TileInput {
    tiles: Vec<Tile>,
    /// Groups of 16 rows, an even number. The last rows may be zeros.
    groups: usize,
    columns: usize,
}

impl TileInput {
    /// Rounds rows of `columns` values.
    #[target_feature(enable = "avx512f")]
    pub(super) fn round(x: &[f32], columns: usize) -> Self {
        let rows = x.len() / columns;
        let groups = rows.div_ceil(INPUT_ROWS) * GROUPS;
        let tiles = vec![Tile::ZERO; groups * blocks(columns) * PASSES];
        let mut input = Self { tiles, groups, columns };
        for start in (0..columns).step_by(CHUNK_COLUMNS) {
            let end = (start + CHUNK_COLUMNS).min(columns);
            for (group, rows) in x.chunks(TILE_ROWS * columns).enumerate() {
                let count = blocks(end - start);
                let tiles = input.group_mut(group, start);
                for (block, first) in (start..end).step_by(BLOCK_COLUMNS).enumerate() {
                    let columns_of_block = first..(first + BLOCK_COLUMNS).min(end);
                    let mut passes = [Tile::ZERO; PASSES];
                    for (r, row) in rows.chunks_exact(columns).enumerate() {
                        let mut values = [0; BLOCK_COLUMNS];
                        for (value, x) in values.iter_mut().zip(&row[columns_of_block.clone()]) {
                            *value = round_input(*x);
                        }
                        for (tile, words) in passes.iter_mut().zip(split_passes(&values)) {
                            tile.0[r] = words;
                        }
                    }
                    for (pass, tile) in passes.iter().enumerate() {
                        tiles[pass * count + block] = transpose(tile);
                    }
                }
            }
        }
        input
    }

    /// Returns the number of pairs of groups.
    pub(super) fn pairs(&self) -> usize {
        self.groups / GROUPS
    }

    /// Returns the tiles of a group for the chunk that begins at a column.
    pub(super) fn group(&self, group: usize, start: usize) -> &[Tile] {
        &self.tiles[self.place(group, start)]
    }

    fn group_mut(&mut self, group: usize, start: usize) -> &mut [Tile] {
        let place = self.place(group, start);
        &mut self.tiles[place]
    }

    fn place(&self, group: usize, start: usize) -> std::ops::Range<usize> {
        let len = blocks(self.columns.min(start + CHUNK_COLUMNS) - start) * PASSES;
        let first = blocks(start) * PASSES * self.groups + group * len;
        first..first + len
    }
}
