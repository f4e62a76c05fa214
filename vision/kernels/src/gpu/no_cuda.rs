//! The kernels in a build without CUDA. No tensor is on a GPU then.

use candle::{DType, Result, Tensor, bail};

use super::pass::{AttentionPass, NewHeads};
use crate::attention::AttentionSettings;

const MISSING: &str = "this program was built without CUDA";

impl AttentionPass {
    /// Returns an error.
    pub fn fill(&self, _layer: usize, _heads: &NewHeads) -> Result<()> {
        bail!("{MISSING}")
    }

    /// Returns an error.
    pub fn store(&self, _layer: usize, _q: &Tensor, _heads: &NewHeads) -> Result<Tensor> {
        bail!("{MISSING}")
    }

    /// Returns an error.
    pub fn attend(&self, _: usize, _q: &Tensor, _: AttentionSettings) -> Result<Tensor> {
        bail!("{MISSING}")
    }
}

/// Kernels of layers: none.
#[expect(clippy::unnecessary_wraps, reason = "with CUDA, the start of a kernel can fail")]
pub(crate) mod layers {
    use super::{DType, Result, Tensor};

    pub(crate) fn rms_norm(_: &Tensor, _: &Tensor, _: f64, _: DType) -> Result<Option<Tensor>> {
        Ok(None)
    }

    pub(crate) fn layer_norm(_: &Tensor, _: &Tensor, _: &Tensor, _: f64) -> Result<Option<Tensor>> {
        Ok(None)
    }

    pub(crate) fn swiglu(_gate: &Tensor, _up: &Tensor) -> Result<Option<Tensor>> {
        Ok(None)
    }

    pub(crate) fn add(_x: &Tensor, _y: &Tensor) -> Result<Option<Tensor>> {
        Ok(None)
    }

    pub(crate) fn add_bias(_x: &Tensor, _bias: &Tensor) -> Result<Option<Tensor>> {
        Ok(None)
    }
}
