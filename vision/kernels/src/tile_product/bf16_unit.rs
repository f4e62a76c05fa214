//! The instructions of this processor for products in bf16.

use std::sync::OnceLock;

use super::bf16_rows::Bf16Rows;
use super::pair_unit::PairUnit;
use super::self_test;
use super::tile_unit::TileUnit;

/// From this number of input rows on, a product uses the tile unit. With fewer, most of a tile is empty:
/// vector instructions are as fast with 1,024 columns, and faster with 192.
const MIN_TILE_INPUTS: usize = 8;
/// From this number of input rows on, a product uses pairs. With one row, other vector instructions are
/// faster.
const MIN_PAIR_INPUTS: usize = 2;

/// Instructions that have passed a test of equality with portable code at their first use.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bf16Unit {
    /// AMX.
    Tiles(TileUnit),
    /// `AVX512_BF16`.
    Pairs(PairUnit),
}

impl Bf16Unit {
    /// Returns the unit for a product with this number of input rows.
    pub(super) fn select(inputs: usize) -> Option<Self> {
        let tiles = || Self::tiles().filter(|_| inputs >= MIN_TILE_INPUTS);
        let pairs = || Self::pairs().filter(|_| inputs >= MIN_PAIR_INPUTS);
        tiles().or_else(pairs)
    }

    /// Returns the unit for products with many input rows.
    pub(super) fn largest() -> Option<Self> {
        Self::tiles().or_else(Self::pairs)
    }

    /// Returns the name of the instructions.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tiles(_) => "AMX",
            Self::Pairs(_) => "AVX512_BF16",
        }
    }

    /// Computes the product of `n` input rows with a weight, row by row.
    pub(super) fn product(self, x: &[f32], n: usize, weight: Bf16Rows) -> Vec<f32> {
        match self {
            Self::Tiles(unit) => unit.product(x, n, weight),
            Self::Pairs(unit) => unit.product(x, n, weight),
        }
    }

    fn tiles() -> Option<Self> {
        static FOUND: OnceLock<Option<Bf16Unit>> = OnceLock::new();
        *FOUND.get_or_init(|| TileUnit::find().map(Self::Tiles).filter(Self::passes_test))
    }

    fn pairs() -> Option<Self> {
        static FOUND: OnceLock<Option<Bf16Unit>> = OnceLock::new();
        *FOUND.get_or_init(|| PairUnit::find().map(Self::Pairs).filter(Self::passes_test))
    }

    fn passes_test(&self) -> bool {
        self_test::is_equal(|x, n, weight| self.product(x, n, weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::print_stdout, reason = "a skipped test says why")]
    fn units_of_this_processor_pass_the_test_of_equality() {
        let units = [
            ("AMX", TileUnit::find().map(Bf16Unit::Tiles)),
            ("AVX512_BF16", PairUnit::find().map(Bf16Unit::Pairs)),
        ];
        for (name, unit) in units {
            match unit {
                Some(unit) => assert!(unit.passes_test(), "{name}"),
                None => println!("skipped: this processor has no {name}"),
            }
        }
    }
}
