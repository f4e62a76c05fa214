//! Language models for `BERTScore` and `BARTScore`, loaded from published checkpoints.
//!
//! All texts of a batch have the same number of tokens, so there is no padding and no padding mask,
//! and results do not depend on the batch.

mod attention;
mod bart;
mod bert;
mod config;
mod layer;
mod source;
mod tokens;

pub(crate) use bart::Bart;
pub(crate) use bert::Bert;
pub(crate) use source::ModelSource;
pub(crate) use tokens::EncodedText;
use tokens::MetricTokenizer;

use acem3_kernels::linear;
use candle::{Device, Result, Tensor};
use candle_nn::VarBuilder;

/// `x · weightᵀ + bias`.
#[derive(Clone, Debug)]
struct BartLinear {
    weight: Tensor,
    bias: Tensor,
}

impl BartLinear {
    /// Loads `weight` (out, in) and `bias` (out).
    fn load(vb: &VarBuilder, input: usize, output: usize) -> Result<Self> {
        Ok(Self { weight: vb.get((output, input), "weight")?, bias: vb.get(output, "bias")? })
    }

    /// Applies the layer to every row.
    ///
    /// # Shapes
    /// (b, t, in) → (b, t, out).
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (b, t, c) = x.dims3()?;
        let rows = linear(&x.reshape((b * t, c))?, &self.weight, Some(&self.bias))?;
        rows.reshape((b, t, ()))
    }
}

/// Returns the token ids of sequences of equal length as a tensor.
///
/// # Shapes
/// b sequences of t → (b, t).
fn id_tensor(sequences: &[&[u32]], device: &Device) -> Result<Tensor> {
    let t = sequences.first().map_or(0, |first| first.len());
    Tensor::new(sequences.concat(), device)?.reshape((sequences.len(), t))
}
