//! Rounding of inputs.

use half::bf16;
#[cfg(target_arch = "x86_64")]
use rayon::prelude::*;

/// Inputs with fewer values are rounded by one thread, because starting others takes longer.
#[cfg(target_arch = "x86_64")]
pub(super) const MIN_PARALLEL_VALUES: usize = 1 << 16;

/// Bits of the smallest magnitude of an input that is not zero: 2⁻⁴⁰.
const SMALLEST_INPUT: u32 = (127 - 40) << 23;

/// Rounds a value to the nearest in bf16, to an even one if two are equally near. Magnitudes below 2⁻⁴⁰
/// become zero. Returns the bits.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]
pub(super) fn round_input(value: f32) -> u16 {
    let bits = value.to_bits();
    let size = bits & !(1 << 31);
    // This turns some NaN into other numbers.
    let rounded = bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) >> 16;
    let rounded = if size > 0x7F80_0000 { 0x7FC0 } else { rounded };
    if size < SMALLEST_INPUT { 0 } else { rounded as u16 }
}

/// Returns the value of the bits of a number in bf16.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]
pub(super) fn widen(bits: u16) -> f32 {
    bf16::from_bits(bits).to_f32()
}

/// Calls `round` with each group of `x` and its part of `rounded`, on all threads if `x` has many values.
/// The sizes are those of a group in `x` and in `rounded`.
#[cfg(target_arch = "x86_64")]
pub(super) fn round_groups<T: Send>(
    x: &[f32],
    rounded: &mut [T],
    [values, rounded_len]: [usize; 2],
    round: impl Fn(&mut [T], &[f32]) + Send + Sync,
) {
    let round = |(rounded, x): (&mut [T], &[f32])| round(rounded, x);
    if x.len() < MIN_PARALLEL_VALUES {
        rounded.chunks_exact_mut(rounded_len).zip(x.chunks(values)).for_each(round);
    } else {
        rounded.par_chunks_exact_mut(rounded_len).zip(x.par_chunks(values)).for_each(round);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_rounded_to_the_nearest() {
        for value in [0.1, -0.1, 1., 3.0e38, f32::MAX, -7.7e-8, 65535., f32::INFINITY] {
            assert_eq!(round_input(value), bf16::from_f32(value).to_bits());
        }
        assert!(widen(round_input(f32::NAN)).is_nan());
        assert!(widen(round_input(f32::from_bits(0xFFFF_FFFF))).is_nan());
        let smallest = 2f32.powi(-40);
        assert_eq!(round_input(smallest), bf16::from_f32(smallest).to_bits());
        assert_eq!([smallest / 2., -0.].map(round_input), [0, 0]);
    }
}
