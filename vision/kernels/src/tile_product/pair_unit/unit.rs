//! The vector instructions of a processor for pairs.

use std::ops::Range;
use std::sync::OnceLock;

use pulp::x86::V4;

use super::input::InputPairs;
use super::kernel::{StoredRows, multiply_packed, multiply_stored, pack_weights};
use super::sizes::WEIGHT_ROWS;
use super::weights::WeightPairs;

/// Calls a function with the instructions for pairs for this number of input rows.
macro_rules! for_rows {
    ($rows:expr, $function:ident $arguments:tt) => {
        match $rows {
            1 => $function::<1> $arguments,
            2 => $function::<2> $arguments,
            3 => $function::<3> $arguments,
            4 => $function::<4> $arguments,
            5 => $function::<5> $arguments,
            _ => $function::<6> $arguments,
        }
    };
}

/// The processor has AVX-512 with instructions for pairs of bf16 values.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Bf16PairUnit {
    simd: V4,
}

impl Bf16PairUnit {
    /// Returns the unit, if there is one.
    pub(in super::super) fn find() -> Option<Self> {
        static FOUND: OnceLock<bool> = OnceLock::new();
        let simd = V4::try_new()?;
        let has_instructions = || std::arch::is_x86_feature_detected!("avx512bf16");
        FOUND.get_or_init(has_instructions).then_some(Self { simd })
    }

    /// Returns the vector instructions without those for pairs.
    pub(super) fn simd(self) -> V4 {
        self.simd
    }

    /// Copies a chunk of some weight rows to blocks, and prefetches what begins `ahead` bytes later.
    #[expect(clippy::unused_self, reason = "a value shows that the processor has the instructions")]
    pub(super) fn pack_weights(
        self,
        rows: &[&[u16]; WEIGHT_ROWS],
        blocks: &mut [WeightPairs],
        ahead: usize,
    ) {
        // SAFETY: The processor has the instructions, because `find` is the only way to a unit.
        #[expect(unsafe_code, reason = "see `multiply_packed`")]
        unsafe {
            pack_weights(rows, blocks, ahead);
        }
    }

    /// Adds the products of up to six input rows with some weight rows to their outputs at `places`.
    pub(super) fn multiply_stored(
        self,
        x: &[InputPairs],
        weights: StoredRows,
        outputs: &mut [&mut [f32]],
        places: Range<usize>,
    ) {
        let simd = self.simd;
        // SAFETY: The processor has the instructions, because `find` is the only way to a unit.
        #[expect(unsafe_code, reason = "see `multiply_packed`")]
        unsafe {
            for_rows!(outputs.len(), multiply_stored(simd, x, weights, outputs, places));
        }
    }

    /// Adds the products of up to six input rows with packed weight rows to their outputs at `places`.
    pub(super) fn multiply_packed(
        self,
        x: &[InputPairs],
        weights: &[WeightPairs],
        outputs: &mut [&mut [f32]],
        places: Range<usize>,
    ) {
        let simd = self.simd;
        // SAFETY: The processor has the instructions, because `find` is the only way to a unit.
        #[expect(
            unsafe_code,
            reason = "on an EPYC of the 4th generation, products of 8 and more rows take half to three \
                      quarters of the time of those with other vector instructions"
        )]
        unsafe {
            for_rows!(outputs.len(), multiply_packed(simd, x, weights, outputs, places));
        }
    }
}
