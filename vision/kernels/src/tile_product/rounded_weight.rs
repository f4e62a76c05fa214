//! Weights in bf16 for products with rounded inputs.

use candle::{DType, Device, Result, Storage, Tensor, bail};
use half::bf16;
use half::slice::HalfFloatSliceExt as _;
use rayon::prelude::*;

use crate::elements::FLAT_BLOCK;

/// Bits of the smallest magnitude of a weight that is not zero, in bf16: 2⁻⁷².
const SMALLEST_WEIGHT: u16 = (127 - 72) << 7;
/// The bit of the sign of bf16.
const SIGN: u16 = 1 << 15;

/// A matrix in bf16 on the CPU, for products whose inputs are rounded to bf16. Values with a magnitude
/// below 2⁻⁷² are zero.
#[derive(Clone, Debug)]
pub struct RoundedWeight {
    /// (`c_out`, `c_in`), contiguous.
    values: Tensor,
}

impl RoundedWeight {
    /// Creates a weight. It shares the values of the tensor, unless some are too small.
    ///
    /// # Errors
    ///
    /// The tensor is no matrix of bf16 values on the CPU, or needs a gradient.
    pub fn new(values: &Tensor) -> Result<Self> {
        if values.dtype() != DType::BF16
            || !values.device().is_cpu()
            || values.rank() != 2
            || values.track_op()
        {
            bail!(
                "a product with rounded inputs takes a matrix in bf16 on the CPU without a gradient, \
                 found {:?} in {:?}",
                values.shape(),
                values.dtype()
            );
        }
        let values = values.contiguous()?;
        let weight = Self { values };
        match weight.with_bits(flush)? {
            Some(flushed) => {
                Ok(Self { values: Tensor::from_vec(flushed, weight.values.dims(), &Device::Cpu)? })
            }
            None => Ok(weight),
        }
    }

    /// Returns the values, (`c_out`, `c_in`).
    pub fn values(&self) -> &Tensor {
        &self.values
    }

    /// Returns `count` rows from `start` on.
    ///
    /// # Errors
    ///
    /// The matrix has fewer rows.
    pub fn narrow(&self, start: usize, count: usize) -> Result<Self> {
        Ok(Self { values: self.values.narrow(0, start, count)? })
    }

    /// Calls a function with the bits of the values, row by row.
    pub(super) fn with_bits<T>(&self, call: impl FnOnce(&[u16]) -> T) -> Result<T> {
        let (storage, layout) = self.values.storage_and_layout();
        match (&*storage, layout.contiguous_offsets()) {
            (Storage::Cpu(storage), Some((start, end))) => {
                Ok(call(storage.as_slice::<bf16>()?[start..end].reinterpret_cast()))
            }
            _ => bail!("a weight is not contiguous on the CPU"),
        }
    }
}

/// Replaces values that are too small by zero; `None` if there is none.
fn flush(bits: &[u16]) -> Option<Vec<bf16>> {
    let is_tiny = |bits: u16| bits & !SIGN > 0 && bits & !SIGN < SMALLEST_WEIGHT;
    // Counting takes vector instructions, a search does not.
    let has_tiny = |bits: &[u16]| bits.iter().filter(|bits| is_tiny(**bits)).count() > 0;
    let flush = |bits: &u16| bf16::from_bits(if is_tiny(*bits) { 0 } else { *bits });
    bits.par_chunks(FLAT_BLOCK).any(has_tiny).then(|| bits.iter().map(flush).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tiny_weights_become_zero() -> Result<()> {
        let limit = 2f32.powi(-72);
        let values = [limit, -limit, limit / 2., -1e-30, 0.5, -0.].map(bf16::from_f32);
        let weight = RoundedWeight::new(&Tensor::new(&[values], &Device::Cpu)?)?;
        let flushed = weight.values().to_dtype(DType::F32)?.to_vec2::<f32>()?;
        assert_eq!(flushed, [[limit, -limit, 0., 0., 0.5, 0.]]);
        Ok(())
    }

    #[test]
    fn other_tensors_are_errors() -> Result<()> {
        let matrix = Tensor::ones((2, 3), DType::BF16, &Device::Cpu)?;
        for tensor in [matrix.to_dtype(DType::F32)?, matrix.flatten_all()?] {
            let error = RoundedWeight::new(&tensor).unwrap_err().to_string();
            assert!(error.contains("a matrix in bf16"), "{error}");
        }
        let variable = candle::Var::from_tensor(&matrix)?;
        let error = RoundedWeight::new(&variable).unwrap_err();
        assert!(error.to_string().contains("without a gradient"), "{error}");
        Ok(())
    }
}
