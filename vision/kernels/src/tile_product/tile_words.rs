//! The contents of a tile register: 16 rows of 64 bytes.

/// Rows of a tile, and 4-byte words of a row.
pub(super) const TILE_ROWS: usize = 16;
/// Bytes of a tile.
pub(super) const TILE_BYTES: usize = TILE_ROWS * TILE_ROWS * 4;

/// The words of a tile: pairs of bf16 values, or sums in f32.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct TileWords(pub(super) [[u32; TILE_ROWS]; TILE_ROWS]);

impl TileWords {
    /// A tile of zeros.
    pub(super) const ZERO: Self = Self([[0; TILE_ROWS]; TILE_ROWS]);
}
