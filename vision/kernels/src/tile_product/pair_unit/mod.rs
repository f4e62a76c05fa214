//! Products with the vector instructions for pairs of bf16 values (`AVX512_BF16`).
//!
//! `VDPBF16PS` (Intel's Software Developer's Manual, volume 2) adds two products to each output: first
//! that of the second values of a pair, then that of the first values, and rounds after each. So it
//! computes two operations of a chain ([`super`]) if the pair holds the values of both: those at columns
//! `j + 8` and `j` of a block of 16 columns. Results equal those of the other processors.

mod input;
mod kernel;
mod task;
mod weights;

use std::sync::OnceLock;

use pulp::x86::V4;

use self::input::PairInput;
use self::task::PairTask;
use super::bf16_rows::Bf16Rows;
use crate::output_columns::compute_columns;

/// Lanes of a chain: its values, and those of seven other chains, are in neighbouring columns.
const LANES: usize = 8;
/// Columns of a block.
const BLOCK_COLUMNS: usize = 2 * LANES;
/// Blocks of a chain.
const CHAIN_BLOCKS: usize = super::portable::CHAIN_COLUMNS / BLOCK_COLUMNS;
/// Input rows that are multiplied together.
const INPUT_ROWS: usize = 6;
/// Weight rows that are multiplied together.
const WEIGHT_ROWS: usize = 8;

/// The processor has AVX-512 with instructions for pairs of bf16 values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bf16PairUnit {
    simd: V4,
}

impl Bf16PairUnit {
    /// Returns the unit, if there is one.
    pub(super) fn find() -> Option<Self> {
        static FOUND: OnceLock<bool> = OnceLock::new();
        let simd = V4::try_new()?;
        let has_instructions = || std::arch::is_x86_feature_detected!("avx512bf16");
        FOUND.get_or_init(has_instructions).then_some(Self { simd })
    }

    /// Computes the product of `n` input rows, at least one, with a weight.
    ///
    /// # Shapes
    /// `x` (n, columns) → (n, rows).
    pub(super) fn product(self, x: &[f32], n: usize, weight: Bf16Rows) -> Vec<f32> {
        let input = PairInput::round(self.simd, x, weight.columns);
        let work = n * weight.rows * weight.columns;
        compute_columns([n, weight.rows], WEIGHT_ROWS, work, |outputs| {
            PairTask { unit: self, input: &input, weight, outputs }.run();
        })
    }
}
