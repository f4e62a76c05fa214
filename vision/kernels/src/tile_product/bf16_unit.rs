//! The instructions of this processor for products in bf16.

use std::sync::OnceLock;

use super::bf16_rows::Bf16Rows;
use super::pair_unit::Bf16PairUnit;
use super::self_test;
use super::tile_unit::TileUnit;

/// From this number of input rows on, a product uses the tile unit. With fewer, most of a tile is empty:
/// the vector instructions of [`crate::row_product`] are as fast with 1,024 columns, and faster with 192.
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
    Pairs(Bf16PairUnit),
}

impl Bf16Unit {
    /// Returns the unit for a product with this number of input rows.
    pub(super) fn select(inputs: usize) -> Option<Self> {
        let tiles = (inputs >= MIN_TILE_INPUTS).then(Self::tiles).flatten();
        tiles.or_else(|| (inputs >= MIN_PAIR_INPUTS).then(Self::pairs).flatten())
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

    /// Computes the product of `n` input rows, at least one, with a weight.
    ///
    /// # Shapes
    /// `x` (n, columns) → (n, rows).
    pub(super) fn product(self, x: &[f32], n: usize, weight: Bf16Rows) -> Vec<f32> {
        match self {
            Self::Tiles(unit) => unit.product(x, n, weight),
            Self::Pairs(unit) => unit.product(x, n, weight),
        }
    }

    fn tiles() -> Option<Self> {
        static FOUND: OnceLock<Option<Bf16Unit>> = OnceLock::new();
        *FOUND.get_or_init(|| TileUnit::find().map(Self::Tiles).filter(|unit| unit.passes_test()))
    }

    fn pairs() -> Option<Self> {
        static FOUND: OnceLock<Option<Bf16Unit>> = OnceLock::new();
        *FOUND
            .get_or_init(|| Bf16PairUnit::find().map(Self::Pairs).filter(|unit| unit.passes_test()))
    }

    fn passes_test(self) -> bool {
        self_test::is_equal(|x, n, weight| self.product(x, n, weight))
    }
}

#[cfg(test)]
mod tests {
    use super::super::portable;
    use super::super::rounding::{round_input, widen};
    use super::*;

    fn units() -> [(&'static str, Option<Bf16Unit>); 2] {
        [
            ("AMX", TileUnit::find().map(Bf16Unit::Tiles)),
            ("AVX512_BF16", Bf16PairUnit::find().map(Bf16Unit::Pairs)),
        ]
    }

    fn values(count: usize, step: usize) -> Vec<u16> {
        let value = |i: usize| ((i * step + 13) % 1009) as f32 / 500. - 1.;
        (0..count).map(|i| round_input(value(i))).collect()
    }

    #[test]
    fn units_give_the_results_of_portable_code() {
        for (rows, columns) in [
            (1, 1),
            (7, 15),
            (8, 16),
            (9, 17),
            (48, 128),
            (50, 129),
            (33, 1024),
            (50, 1025),
            (9, 2100),
        ] {
            let (x, weight) = (values(40 * columns, 7919), values(rows * columns, 6007));
            let [x, wide] =
                [&x, &weight].map(|bits| bits.iter().map(|bits| widen(*bits)).collect::<Vec<_>>());
            let want = portable::multiply(&x, &wide, [40, rows, columns]);
            for (name, unit) in units() {
                for n in (1..=20).chain([31, 32, 33, 36, 37, 40]) {
                    let weight = Bf16Rows { values: &weight, rows, columns };
                    let got = unit.map(|unit| unit.product(&x[..n * columns], n, weight));
                    let is_equal = got.is_none_or(|got| got == want[..n * rows]);
                    assert!(is_equal, "{name}: {n} inputs, {rows}x{columns}");
                }
            }
        }
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "a skipped test says why")]
    fn units_of_this_processor_pass_the_test_of_equality() {
        for (name, unit) in units() {
            match unit {
                Some(unit) => assert!(unit.passes_test(), "{name}"),
                None => println!("skipped: this processor has no {name}"),
            }
        }
    }
}
