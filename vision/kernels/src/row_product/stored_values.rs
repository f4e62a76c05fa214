//! Types in which weights are stored, and their conversion to vectors of f32 for AVX2.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::arch::x86_64::{__m128i, __m256i};

use pulp::x86::V3;
use pulp::{cast, f32x8};

/// Number of f32 values in a vector register.
pub(crate) const LANES: usize = 8;
/// Columns that are multiplied before their partial sums are added. A group of input rows takes
/// 16 or 24 kB then, half of a core's first cache. A multiple of the size of all packed blocks.
pub(crate) const CHUNK_COLUMNS: usize = 1024;
/// Steps of a chunk of columns.
const CHUNK_STEPS: usize = CHUNK_COLUMNS / LANES;

/// A type of stored weights: blocks of values, which divide into parts that share a scale.
pub(crate) trait StoredValues {
    /// What a row is stored as: numbers, or bytes of packed blocks.
    type Element: Copy + Send + Sync;
    /// Smallest piece of a row that can be converted.
    type Block: Copy;
    /// What all vectors of a part need.
    type Part: Copy;
    /// Elements of a block.
    const BLOCK_ELEMENTS: usize;
    /// Parts of a block.
    const PARTS: usize;
    /// Vectors of a part.
    const PART_VECTORS: usize;
    /// Up to this number of input rows, weights are converted as they are read, again for each group
    /// of rows. With more, they are converted once and packed.
    const MAX_DIRECT_ROWS: usize;
    /// Steps of [`LANES`] columns after which neighbouring partial sums are added.
    const SUM_STEPS: usize = CHUNK_STEPS;

    /// Splits elements into whole blocks and the rest.
    fn split_blocks(elements: &[Self::Element]) -> (&[Self::Block], &[Self::Element]);

    /// Fills up an incomplete block with zeros.
    fn pad_block(rest: &[Self::Element]) -> Self::Block;

    /// Prepares a part of a block.
    fn prepare_part(simd: V3, block: &Self::Block, part: usize) -> Self::Part;

    /// Converts a vector of a part.
    fn widen(simd: V3, block: &Self::Block, part: &Self::Part, vector: usize) -> f32x8;
}

/// Implements [`StoredValues`] for arrays of numbers.
macro_rules! dense_values {
    ($name:ident, $element:ty, $zero:expr, $max_rows:literal, $steps:expr, $doc:literal, |$simd:ident, $block:ident| $widen:expr) => {
        #[doc = $doc]
        pub(crate) struct $name;

        impl StoredValues for $name {
            type Element = $element;
            type Block = [$element; LANES];
            type Part = ();
            const BLOCK_ELEMENTS: usize = LANES;
            const PARTS: usize = 1;
            const PART_VECTORS: usize = 1;
            const MAX_DIRECT_ROWS: usize = $max_rows;
            const SUM_STEPS: usize = $steps;

            #[inline(always)]
            fn split_blocks(elements: &[$element]) -> (&[Self::Block], &[$element]) {
                elements.as_chunks()
            }

            #[inline(always)]
            fn pad_block(rest: &[$element]) -> Self::Block {
                let mut block = [$zero; LANES];
                block[..rest.len()].copy_from_slice(rest);
                block
            }

            #[inline(always)]
            fn prepare_part(_: V3, _: &Self::Block, _: usize) {}

            #[inline(always)]
            fn widen($simd: V3, $block: &Self::Block, (): &(), _: usize) -> f32x8 {
                $widen
            }
        }
    };
}

dense_values!(F32Values, f32, 0., 32, CHUNK_STEPS, "Values in f32.", |_simd, block| cast(*block));
dense_values!(Bf16Values, u16, 0, 32, CHUNK_STEPS, "The bits of bf16 values.", |simd, block| {
    widen_bf16(simd, block)
});
dense_values!(
    TileValues,
    u16,
    0,
    32,
    16,
    "The bits of bf16 values, whose products are added in the order of AMX (`crate::tile_product`).",
    |simd, block| widen_bf16(simd, block)
);
dense_values!(F16Values, u16, 0, 8, CHUNK_STEPS, "The bits of f16 values.", |simd, block| {
    let lanes = simd.avx2._mm256_cvtepu16_epi32(cast(*block));
    widen_upper_f16(simd, simd.avx2._mm256_slli_epi32::<16>(lanes))
});

/// `Q6K` blocks: 256 values, the lower four and the upper two bits apart, then 16 signed scales of
/// 8 bits and their scale in f16 (`BlockQ6K` in candle's `k_quants.rs`).
pub(crate) struct Q6KBlocks;

/// A part of a [`Q6KBlocks`] block.
#[derive(Clone, Copy)]
pub(crate) struct Q6KPart {
    scale: f32x8,
    /// Bits below the lower and the upper bits of the values.
    shifts: [__m128i; 2],
    /// Positions in the block: of the first byte with lower bits, and with upper bits.
    starts: [usize; 2],
}

impl StoredValues for Q6KBlocks {
    type Element = u8;
    type Block = [u8; 210];
    type Part = Q6KPart;
    const BLOCK_ELEMENTS: usize = 210;
    const PARTS: usize = 16;
    const PART_VECTORS: usize = 2;
    const MAX_DIRECT_ROWS: usize = 4;

    #[inline(always)]
    fn split_blocks(elements: &[u8]) -> (&[Self::Block], &[u8]) {
        elements.as_chunks()
    }

    #[inline(always)]
    fn pad_block(rest: &[u8]) -> Self::Block {
        let mut block = [0; 210];
        block[..rest.len()].copy_from_slice(rest);
        block
    }

    #[inline(always)]
    fn prepare_part(simd: V3, block: &[u8; 210], part: usize) -> Q6KPart {
        let scale = f32::from(block[192 + part].cast_signed());
        // Each half of the block has four groups of 32 values.
        let (half, group, start) = (part / 8, part % 8 / 2, part % 2 * 16);
        Q6KPart {
            scale: simd.splat_f32x8(read_f16(block, 208) * scale),
            shifts: [cast([group as u64 / 2 * 4, 0]), cast([group as u64 * 2, 0])],
            starts: [half * 64 + group % 2 * 32 + start, 128 + half * 32 + start],
        }
    }

    #[inline(always)]
    fn widen(simd: V3, block: &[u8; 210], part: &Q6KPart, vector: usize) -> f32x8 {
        let (avx, avx2) = (simd.avx, simd.avx2);
        let low = read_bytes(simd, block, part.starts[0] + vector * LANES);
        let low = avx2._mm256_srl_epi32(low, part.shifts[0]);
        let low = avx2._mm256_and_si256(low, avx._mm256_set1_epi32(15));
        let high = read_bytes(simd, block, part.starts[1] + vector * LANES);
        let high = avx2._mm256_srl_epi32(high, part.shifts[1]);
        let high = avx2._mm256_and_si256(high, avx._mm256_set1_epi32(3));
        let values = avx2._mm256_or_si256(low, avx2._mm256_slli_epi32::<4>(high));
        let values = avx2._mm256_sub_epi32(values, avx._mm256_set1_epi32(32));
        simd.mul_f32x8(cast(avx._mm256_cvtepi32_ps(values)), part.scale)
    }
}

/// Reads an f16 value of a block. The general conversion of `half` takes longer, because it branches.
#[inline(always)]
fn read_f16<const N: usize>(block: &[u8; N], start: usize) -> f32 {
    let bits = u32::from(u16::from_le_bytes([block[start], block[start + 1]]));
    // As in `widen_upper_f16`.
    let small = (bits & 0x7FFF) << 13;
    let value = f32::from_bits(small) * 2f32.powi(112);
    let exponent = if small > 0x0F7F_FFFF { 0x7F80_0000 } else { 0 };
    f32::from_bits(value.to_bits() | exponent | (bits & 0x8000) << 16)
}

/// Reads eight bytes of a block as 32-bit values.
#[inline(always)]
fn read_bytes<const N: usize>(simd: V3, block: &[u8; N], start: usize) -> __m256i {
    let mut bytes = [0; 2 * LANES];
    bytes[..LANES].copy_from_slice(&block[start..start + LANES]);
    simd.avx2._mm256_cvtepu8_epi32(cast(bytes))
}

/// Converts bf16 values.
#[inline(always)]
fn widen_bf16(simd: V3, block: &[u16; LANES]) -> f32x8 {
    let lanes = simd.avx2._mm256_cvtepu16_epi32(cast(*block));
    cast(simd.avx2._mm256_slli_epi32::<16>(lanes))
}

/// Converts the f16 value in the upper half of each lane.
#[inline(always)]
fn widen_upper_f16(simd: V3, lanes: __m256i) -> f32x8 {
    let (avx, avx2) = (simd.avx, simd.avx2);
    let sign = avx2._mm256_and_si256(lanes, avx._mm256_set1_epi32(i32::MIN));
    // The exponent and the mantissa at their places in f32. The exponent is too small by 112.
    let small = avx2._mm256_srli_epi32::<3>(avx2._mm256_andnot_si256(sign, lanes));
    let scale = avx._mm256_set1_ps(2f32.powi(112));
    let value = avx._mm256_mul_ps(cast(small), scale);
    // The largest exponent stands for infinity and NaN.
    let special = avx2._mm256_cmpgt_epi32(small, avx._mm256_set1_epi32(0x0F7F_FFFF));
    let exponent = avx2._mm256_and_si256(special, avx._mm256_set1_epi32(0x7F80_0000));
    let bits = avx2._mm256_or_si256(avx2._mm256_or_si256(sign, exponent), cast(value));
    cast(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    #[test]
    fn every_half_precision_value_keeps_its_bits() {
        let Some(simd) = V3::try_new() else {
            return;
        };
        for bits in 0..=u16::MAX {
            let block = [bits; LANES];
            let value = |vector: f32x8| cast::<_, [f32; LANES]>(vector)[5];
            let pairs = [
                (value(F16Values::widen(simd, &block, &(), 0)), f16::from_bits(bits).to_f32()),
                (read_f16(&bits.to_le_bytes(), 0), f16::from_bits(bits).to_f32()),
                (value(Bf16Values::widen(simd, &block, &(), 0)), bf16::from_bits(bits).to_f32()),
            ];
            for (got, want) in pairs {
                assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan());
            }
        }
    }
}
