//! Sizes of blocks and groups.

use super::super::portable::CHAIN_COLUMNS;

/// Chains of a dot product. Their values are in neighbouring columns.
pub(super) const LANES: usize = 8;
/// Columns of a block.
pub(super) const BLOCK_COLUMNS: usize = 2 * LANES;
/// Blocks of a chain.
pub(super) const CHAIN_BLOCKS: usize = CHAIN_COLUMNS / BLOCK_COLUMNS;
/// Input rows that are multiplied together.
pub(super) const INPUT_ROWS: usize = 6;
/// Weight rows that are multiplied together.
pub(super) const WEIGHT_ROWS: usize = 8;
