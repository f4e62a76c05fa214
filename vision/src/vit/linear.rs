//! Linear layer whose bias has a fast gradient (see [`acem3_kernels`]).

use acem3_kernels::{Matrix, add_bias};
use candle::{Result, Tensor};
use candle_nn::{Init, VarBuilder};

/// A linear layer, `x · weightᵀ + bias`.
#[derive(Clone, Debug)]
pub(super) struct VitLinear {
    weight: Matrix,
    bias: Tensor,
}

impl VitLinear {
    /// Loads `weight` (out, in) and `bias` (out).
    pub(super) fn load(vb: &VarBuilder, input: usize, output: usize) -> Result<Self> {
        let init = Init::Randn { mean: 0., stdev: 0.02 };
        let weight = match Matrix::load_converted(vb, (output, input), "weight")? {
            Some(weight) => weight,
            None => Matrix::Dense(vb.get_with_hints((output, input), "weight", init)?),
        };
        let bias = vb.get_with_hints(output, "bias", Init::Const(0.))?;
        Ok(Self { weight, bias })
    }

    /// Returns a layer with `count` of the outputs, starting at `start`.
    pub(super) fn select_outputs(&self, start: usize, count: usize) -> Result<Self> {
        Ok(Self {
            weight: self.weight.narrow(start, count)?,
            bias: self.bias.narrow(0, start, count)?,
        })
    }

    /// Applies the layer to every row.
    ///
    /// # Shapes
    /// (n, in) → (n, out).
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        add_bias(&self.weight.multiply(x)?, &self.bias)
    }
}
