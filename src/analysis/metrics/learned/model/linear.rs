//! Linear layer of BART.

use acem3_kernels::linear;
use candle::{Result, Tensor};
use candle_nn::VarBuilder;

/// `x · weightᵀ + bias`.
#[derive(Clone, Debug)]
pub(super) struct BartLinear {
    weight: Tensor,
    bias: Tensor,
}

impl BartLinear {
    /// Loads `weight` (out, in) and `bias` (out).
    pub(super) fn load(vb: &VarBuilder, input: usize, output: usize) -> Result<Self> {
        Ok(Self { weight: vb.get((output, input), "weight")?, bias: vb.get(output, "bias")? })
    }

    /// Applies the layer to every row.
    ///
    /// # Shapes
    /// (b, t, in) → (b, t, out).
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (b, t, c) = x.dims3()?;
        let rows = linear(&x.reshape((b * t, c))?, &self.weight, Some(&self.bias))?;
        rows.reshape((b, t, ()))
    }
}
