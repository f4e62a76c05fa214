//! RMS norm of a decoder.

use acem3_kernels::{rms_norm, rms_norm_to};
use candle::{DType, Result, Tensor};
use candle_nn::VarBuilder;

use super::config::DecoderConfig;

/// RMS norm with its weight.
#[derive(Clone, Debug)]
pub(super) struct DecoderNorm {
    weight: Tensor,
    eps: f64,
}

impl DecoderNorm {
    /// Loads the norm of rows of `size` values from the tensor `name`. Gemma 3 stores its weight minus
    /// 1 (`Gemma3RMSNorm` in transformers' `modeling_gemma3.py`).
    pub(super) fn load(
        vb: &VarBuilder,
        config: &DecoderConfig,
        size: usize,
        name: &str,
    ) -> Result<Self> {
        let mut weight = vb.get(size, name)?;
        if config.gemma.is_some() {
            let dtype = weight.dtype();
            weight = (weight.to_dtype(DType::F32)? + 1.0)?.to_dtype(dtype)?;
        }
        Ok(Self { weight, eps: config.rms_norm_eps })
    }

    /// Normalises rows.
    ///
    /// # Shapes
    /// `(..., size)` to `(..., size)`.
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        rms_norm(x, &self.weight, self.eps)
    }

    /// Normalises rows. The result has the type `dtype`.
    ///
    /// # Shapes
    /// `(..., size)` to `(..., size)`.
    pub(super) fn forward_to(&self, x: &Tensor, dtype: DType) -> Result<Tensor> {
        rms_norm_to(x, &self.weight, self.eps, dtype)
    }
}
