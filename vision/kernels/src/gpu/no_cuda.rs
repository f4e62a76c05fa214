//! The kernels in a build without CUDA. No tensor is on a GPU then.

use candle::{DType, Result, Tensor, bail};

use super::pass::{AttentionPass, NewHeads};
use crate::attention::AttentionSettings;

const MISSING: &str = "this program was built without CUDA";

impl AttentionPass {
    /// Returns an error.
    pub fn store(&self, _layer: usize, _heads: &NewHeads) -> Result<Option<Tensor>> {
        bail!("{MISSING}")
    }

    /// Returns an error.
    pub fn attend(&self, _: usize, _q: &Tensor, _: AttentionSettings) -> Result<Tensor> {
        bail!("{MISSING}")
    }
}

/// Kernels of layers.
pub(crate) mod layers {
    use super::{DType, MISSING, Result, Tensor, bail};

    pub(crate) fn has_kernels(_tensors: &[&Tensor]) -> bool {
        false
    }

    pub(crate) fn rms_norm(_: &Tensor, _: &Tensor, _eps: f64, _: DType) -> Result<Tensor> {
        bail!("{MISSING}")
    }

    pub(crate) fn layer_norm(_: &Tensor, _: &Tensor, _: &Tensor, _eps: f64) -> Result<Tensor> {
        bail!("{MISSING}")
    }

    pub(crate) fn swiglu(_gate: &Tensor, _up: &Tensor) -> Result<Tensor> {
        bail!("{MISSING}")
    }

    pub(crate) fn add(_x: &Tensor, _y: &Tensor) -> Result<Tensor> {
        bail!("{MISSING}")
    }

    pub(crate) fn add_bias(_x: &Tensor, _bias: &Tensor) -> Result<Tensor> {
        bail!("{MISSING}")
    }
}
