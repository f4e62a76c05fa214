//! BERT's pooler: a dense layer with tanh on the state of the first token (transformers'
//! `BertPooler`).

use acem3_kernels::linear;
use candle::{Result, Tensor};
use candle_nn::VarBuilder;

/// A dense layer with tanh.
#[derive(Clone, Debug)]
pub(crate) struct BertPooler {
    weight: Tensor,
    bias: Tensor,
}

impl BertPooler {
    /// Loads `weight` (c, c) and `bias` (c).
    pub(super) fn load(vb: &VarBuilder, width: usize) -> Result<Self> {
        Ok(Self { weight: vb.get((width, width), "weight")?, bias: vb.get(width, "bias")? })
    }

    /// Maps states of first tokens to embeddings.
    ///
    /// # Shapes
    /// (b, c) → (b, c).
    pub(crate) fn forward(&self, states: &Tensor) -> Result<Tensor> {
        linear(states, &self.weight, Some(&self.bias))?.tanh()
    }
}
