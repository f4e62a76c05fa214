//! Selection of the kernel for the processor.

use std::sync::OnceLock;

use super::byte_panels::{BytePair, BytePanel};
use super::kernel::{Kernel, PanelProducts};
use super::nibble_panels::{NibbleBlock, NibblePanel};
use super::panel_rows::{BLOCK_VALUES, QUAD_BYTES};
use super::portable::Portable;

/// A computation with any kernel.
pub(super) trait WithKernel {
    /// Result of the computation.
    type Output;

    /// Computes with a kernel.
    fn run<K: Kernel>(self, kernel: K) -> Self::Output;
}

/// A kernel that this processor runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    #[cfg(target_arch = "x86_64")]
    Avx512(super::avx512::Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(super::avx2::Avx2),
    Portable(Portable),
}

impl Tier {
    fn run<W: WithKernel>(self, work: W) -> W::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(kernel) => work.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(kernel) => work.run(kernel),
            Self::Portable(kernel) => work.run(kernel),
        }
    }

    fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "AVX-512 VNNI",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "AVX2",
            Self::Portable(_) => "portable",
        }
    }
}

/// Returns the kernels that this processor runs, the fastest first.
fn available() -> Vec<Tier> {
    let mut tiers = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        tiers.extend(super::avx512::Avx512::try_new().map(Tier::Avx512));
        tiers.extend(super::avx2::Avx2::try_new().map(Tier::Avx2));
    }
    tiers.push(Tier::Portable(Portable));
    tiers
}

/// Returns the fastest kernel whose results equal those of the portable one in a test at start.
fn best() -> Tier {
    static BEST: OnceLock<Tier> = OnceLock::new();
    *BEST.get_or_init(|| {
        let expected = Tier::Portable(Portable).run(SelfTest);
        let works = |tier: &Tier| tier.run(SelfTest) == expected;
        available().into_iter().find(works).unwrap_or(Tier::Portable(Portable))
    })
}

/// Runs a computation with the fastest kernel.
pub(super) fn with_kernel<W: WithKernel>(work: W) -> W::Output {
    best().run(work)
}

/// Returns the name of the instructions that products with 8-bit weights use on this processor. They
/// have passed a test of equality with the portable kernel. Results do not depend on them.
pub fn instruction_set() -> &'static str {
    best().name()
}

/// Products of pseudo-random rows and panels, with the smallest and largest values.
struct SelfTest;

impl WithKernel for SelfTest {
    type Output = Vec<u32>;

    fn run<K: Kernel>(self, kernel: K) -> Vec<u32> {
        /// Values of an input row: two `Q4K` blocks.
        const COLUMNS: usize = 512;
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        let x: Vec<f32> = (0..4 * COLUMNS).map(|_| next() as f32 - 3e4).collect();
        let [row, rows] = [&x[..COLUMNS], &x].map(|x| kernel.round(x, COLUMNS));
        // Numbers in f16 without the exponents of infinity and NaN.
        let mut pairs: [BytePair; COLUMNS / BLOCK_VALUES / 2] = [[[0x2C; QUAD_BYTES]; _]; _];
        for byte in pairs.iter_mut().flat_map(|pair| pair[1..].as_flattened_mut()) {
            *byte = [next().to_le_bytes()[0], 0x80, 0x7F, 0xFF][next() as usize % 4];
        }
        let mut blocks: [NibbleBlock; 2] = [[[0x2C; QUAD_BYTES]; _]; 2];
        for byte in blocks.iter_mut().flat_map(|block| block[1..].as_flattened_mut()) {
            *byte = [next().to_le_bytes()[0], 0xFF][next() as usize % 2];
        }
        let bytes = BytePanel { pairs: &pairs };
        let nibbles = NibblePanel { blocks: &blocks };
        let mut products: Vec<PanelProducts> = Vec::new();
        products.extend(kernel.multiply_bytes::<1>(&row, bytes));
        products.extend(kernel.multiply_bytes::<4>(&rows, bytes));
        products.extend(kernel.multiply_nibbles::<1>(&row, nibbles));
        products.extend(kernel.multiply_nibbles::<4>(&rows, nibbles));
        products.iter().flatten().map(|product| product.to_bits()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::row_rounding::{ROW_WORDS, SCALE_WORD};
    use super::*;

    #[test]
    fn all_kernels_give_equal_results() {
        let expected = Tier::Portable(Portable).run(SelfTest);
        assert!(expected.iter().any(|bits| *bits != 0));
        for tier in available() {
            assert!(tier.run(SelfTest) == expected, "{}", tier.name());
        }
        assert_eq!(Some(&best()), available().first());
    }

    /// Rounds rows of two blocks.
    struct Rounded<'a>(&'a [f32]);

    impl WithKernel for Rounded<'_> {
        type Output = Vec<i32>;

        fn run<K: Kernel>(self, kernel: K) -> Vec<i32> {
            kernel.round(self.0, 2 * BLOCK_VALUES).words
        }
    }

    #[test]
    fn all_kernels_round_equally() {
        let value = |i: usize| ((i * 7919 % 2003) as f32 - 1001.) * 0.37;
        let mut x: Vec<f32> = (0..6 * BLOCK_VALUES).map(value).collect();
        x[BLOCK_VALUES..2 * BLOCK_VALUES].fill(0.);
        x[2 * BLOCK_VALUES..3 * BLOCK_VALUES].fill(-1e-31);
        x[3 * BLOCK_VALUES] = -1e30;
        let expected = Tier::Portable(Portable).run(Rounded(&x));
        for tier in available() {
            assert_eq!(tier.run(Rounded(&x)), expected, "{}", tier.name());
        }
    }

    /// A product with such a block is NaN.
    #[test]
    fn scales_of_blocks_that_are_not_finite_are_nan() {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = [1.5; 2 * BLOCK_VALUES];
            x[5] = value;
            for tier in available() {
                let words = tier.run(Rounded(&x));
                let scales = words[SCALE_WORD..].iter().step_by(ROW_WORDS);
                let scales: Vec<f32> =
                    scales.map(|bits| f32::from_bits(bits.cast_unsigned())).collect();
                assert!(scales[0].is_nan() && scales[1] > 0., "{}: {scales:?}", tier.name());
            }
        }
    }
}
