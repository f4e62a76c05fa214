//! Layer of BART: sublayers with residual connections and post-layer-norm.

use acem3_kernels::{Activation, LayerNorm, activate};
use candle::{Result, Tensor};
use candle_nn::VarBuilder;

use super::attention::BartAttention;
use super::linear::BartLinear;

/// Sizes of a layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct BartLayerSizes {
    /// Width of the hidden states.
    pub(super) hidden: usize,
    /// Width inside the MLP.
    pub(super) inner: usize,
    /// Number of attention heads.
    pub(super) heads: usize,
    /// Epsilon of the layer norms.
    pub(super) eps: f64,
    /// Activation of the MLP.
    pub(super) act: Activation,
}

/// An encoder or decoder layer.
#[derive(Clone, Debug)]
pub(super) struct BartLayer {
    attention: BartAttention,
    attention_norm: LayerNorm,
    cross: Option<(BartAttention, LayerNorm)>,
    up: BartLinear,
    down: BartLinear,
    norm: LayerNorm,
    act: Activation,
}

impl BartLayer {
    /// Loads a layer; decoder layers also have cross-attention.
    pub(super) fn load(vb: &VarBuilder, sizes: BartLayerSizes, is_decoder: bool) -> Result<Self> {
        let BartLayerSizes { hidden, inner, heads, eps, act } = sizes;
        let norm = |name: &str| LayerNorm::load(&vb.pp(name), hidden, eps);
        let attention = |name: &str| BartAttention::load(&vb.pp(name), hidden, heads);
        let cross = if is_decoder {
            let norm = norm("encoder_attn_layer_norm")?;
            Some((attention("encoder_attn")?, norm))
        } else {
            None
        };
        Ok(Self {
            attention: attention("self_attn")?,
            attention_norm: norm("self_attn_layer_norm")?,
            cross,
            up: BartLinear::load(&vb.pp("fc1"), hidden, inner)?,
            down: BartLinear::load(&vb.pp("fc2"), inner, hidden)?,
            norm: norm("final_layer_norm")?,
            act,
        })
    }

    /// Runs an encoder layer.
    ///
    /// # Shapes
    /// (b, t, c) → (b, t, c).
    pub(super) fn encode(&self, x: &Tensor) -> Result<Tensor> {
        let attended = self.attention.forward(x, x, None)?;
        self.feed_forward(&self.attention_norm.forward(&(x + attended)?)?)
    }

    /// Runs a decoder layer: causal self-attention, then cross-attention to `memory`.
    ///
    /// # Shapes
    /// `x` (b, t, c), `mask` (t, t), `memory` (b, s, c) → (b, t, c).
    pub(super) fn decode(&self, x: &Tensor, mask: &Tensor, memory: &Tensor) -> Result<Tensor> {
        let attended = self.attention.forward(x, x, Some(mask))?;
        let mut x = self.attention_norm.forward(&(x + attended)?)?;
        if let Some((cross, norm)) = &self.cross {
            x = norm.forward(&(&x + cross.forward(&x, memory, None)?)?)?;
        }
        self.feed_forward(&x)
    }

    fn feed_forward(&self, x: &Tensor) -> Result<Tensor> {
        let inner = activate(&self.up.forward(x)?, self.act)?;
        self.norm.forward(&(x + self.down.forward(&inner)?)?)
    }
}
