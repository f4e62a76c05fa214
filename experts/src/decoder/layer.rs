//! Decoder layer: pre-norm attention, then a gated feed-forward block.

use acem3_kernels::{rms_norm, swiglu};
use candle::{Result, Tensor};
use candle_nn::VarBuilder;

use super::attention::{AttentionBatch, CachedBatch, DecoderAttention};
use super::batch_layout::BatchLayout;
use super::config::DecoderConfig;
use crate::ops::{AdaptedLinear, RotaryTables};

/// Layer of the decoder.
#[derive(Clone, Debug)]
pub struct DecoderLayer {
    input_norm: Tensor,
    attention: DecoderAttention,
    post_norm: Tensor,
    gate: AdaptedLinear,
    up: AdaptedLinear,
    down: AdaptedLinear,
    eps: f64,
}

impl DecoderLayer {
    /// Loads a layer. `window`: see [`DecoderConfig::window`].
    pub(super) fn load(
        vb: &VarBuilder,
        config: &DecoderConfig,
        rotary: &RotaryTables,
        window: Option<usize>,
    ) -> Result<Self> {
        let (c, inner) = (config.hidden_size, config.intermediate_size);
        let mlp = vb.pp("mlp");
        Ok(Self {
            input_norm: vb.get(c, "input_layernorm.weight")?,
            attention: DecoderAttention::load(&vb.pp("self_attn"), config, rotary, window)?,
            post_norm: vb.get(c, "post_attention_layernorm.weight")?,
            gate: AdaptedLinear::load(&mlp, (inner, c), "gate_proj")?,
            up: AdaptedLinear::load(&mlp, (inner, c), "up_proj")?,
            down: AdaptedLinear::load(&mlp, (c, inner), "down_proj")?,
            eps: config.rms_norm_eps,
        })
    }

    /// Runs the layer over complete sequences without caches.
    ///
    /// # Shapes
    /// `(b·t, c)` to `(b·t, c)`.
    pub fn forward_full(&self, x: &Tensor, layout: &BatchLayout) -> Result<Tensor> {
        let mut batch = AttentionBatch::Full {
            batch_size: layout.batch_size,
            positions: layout.positions.clone(),
            mask: layout.mask.clone(),
        };
        self.forward(x, &mut batch)
    }

    /// Appends the keys and values of new tokens to the caches.
    ///
    /// # Shapes
    /// `x`: `(n, c)`.
    pub(super) fn fill_caches(&self, x: &Tensor, batch: &mut CachedBatch) -> Result<()> {
        let normed = rms_norm(x, &self.input_norm, self.eps)?;
        self.attention.fill_caches(&normed, batch)
    }

    /// Runs the layer over a batch.
    ///
    /// # Shapes
    /// `x` and the result: `(n, c)`, the sequences one after the other.
    pub(super) fn forward(&self, x: &Tensor, batch: &mut AttentionBatch) -> Result<Tensor> {
        let normed = rms_norm(x, &self.input_norm, self.eps)?;
        let x = (x + self.attention.forward(&normed, batch)?)?;
        let normed = rms_norm(&x, &self.post_norm, self.eps)?;
        let inner = swiglu(&self.gate.forward(&normed, None)?, &self.up.forward(&normed, None)?)?;
        x + self.down.forward(&inner, None)?
    }
}
