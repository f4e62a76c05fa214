//! Rounding of inputs, and weights that are too small.

use candle::{Device, Result, Storage, Tensor};
use half::bf16;

/// Bits of the smallest input that is not zero: 2⁻⁴⁰.
const SMALLEST_INPUT: u32 = (127 - 40) << 23;
/// Bits of the smallest weight that is not zero, in bf16: 2⁻⁷².
const SMALLEST_WEIGHT: u16 = (127 - 72) << 7;
/// The bit of the sign of bf16.
const SIGN: u16 = 1 << 15;

/// Rounds a value to the nearest in bf16, to an even one if two are equally near. Values below 2⁻⁴⁰
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

/// Replaces weights below 2⁻⁷² by zero.
///
/// # Errors
///
/// The tensor is not one of bf16 values on the CPU.
pub fn flush_tiny_weights(weights: Tensor) -> Result<Tensor> {
    let is_tiny = |weight: &bf16| {
        let size = weight.to_bits() & !SIGN;
        size > 0 && size < SMALLEST_WEIGHT
    };
    let values = {
        let (storage, layout) = weights.storage_and_layout();
        let (Storage::Cpu(storage), Some((start, end))) = (&*storage, layout.contiguous_offsets())
        else {
            candle::bail!("the weight is not contiguous on the CPU");
        };
        let values = &storage.as_slice::<bf16>()?[start..end];
        // Usually there is none. `any` would stop at the first and is not vectorised.
        if values.iter().filter(|weight| is_tiny(weight)).count() == 0 {
            None
        } else {
            let flush = |weight: &bf16| if is_tiny(weight) { bf16::ZERO } else { *weight };
            Some(values.iter().map(flush).collect::<Vec<bf16>>())
        }
    };
    match values {
        Some(values) => Tensor::from_vec(values, weights.dims(), &Device::Cpu),
        None => Ok(weights),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_rounded_to_the_nearest() {
        for value in [0.1, -0.1, 1., 3.0e38, f32::MAX, -7.7e-8, 65535., f32::INFINITY, -0.] {
            let rounded = bf16::from_bits(round_input(value));
            assert_eq!(rounded.to_f32(), bf16::from_f32(value).to_f32());
        }
        assert!(bf16::from_bits(round_input(f32::NAN)).is_nan());
        assert!(bf16::from_bits(round_input(f32::from_bits(0xFFFF_FFFF))).is_nan());
        assert_eq!(round_input(2f32.powi(-41)), 0);
        assert_eq!(bf16::from_bits(round_input(2f32.powi(-40))).to_f32(), 2f32.powi(-40));
    }

    #[test]
    fn only_tiny_weights_become_zero() -> Result<()> {
        let limit = 2f32.powi(-72);
        let weights = [limit, -limit, limit / 2., -1e-30, 0.5].map(bf16::from_f32);
        let flushed = flush_tiny_weights(Tensor::new(&weights, &Device::Cpu)?)?;
        let flushed = flushed.to_vec1::<bf16>()?.into_iter().map(bf16::to_f32);
        assert_eq!(flushed.collect::<Vec<_>>(), [limit, -limit, 0., 0., 0.5]);
        Ok(())
    }
}
