//! One pre-norm block: attention, then the gated feed-forward layer.

use candle::{Result, Tensor};
use candle_nn::VarBuilder;

use super::attention::{Attention, Sequences};
use super::batch_layout::Sight;
use super::config::DecoderConfig;
use crate::ops::{Projection, Rotary, rms_norm, swiglu};

/// A layer of the decoder.
#[derive(Clone, Debug)]
pub struct Layer {
    input_norm: Tensor,
    attention: Attention,
    post_norm: Tensor,
    gate: Projection,
    up: Projection,
    down: Projection,
    eps: f64,
}

impl Layer {
    /// `window`: how many tokens a token of this layer sees, where not all before it.
    pub(super) fn load(
        vb: &VarBuilder,
        config: &DecoderConfig,
        rotary: &Rotary,
        window: Option<usize>,
    ) -> Result<Self> {
        let (c, inner) = (config.hidden_size, config.intermediate_size);
        let mlp = vb.pp("mlp");
        Ok(Self {
            input_norm: vb.get(c, "input_layernorm.weight")?,
            attention: Attention::load(&vb.pp("self_attn"), config, rotary, window)?,
            post_norm: vb.get(c, "post_attention_layernorm.weight")?,
            gate: Projection::load(&mlp, (inner, c), "gate_proj")?,
            up: Projection::load(&mlp, (inner, c), "up_proj")?,
            down: Projection::load(&mlp, (c, inner), "down_proj")?,
            eps: config.rms_norm_eps,
        })
    }

    /// The layer over whole sequences, nothing being remembered.
    ///
    /// # Shapes
    /// `(b·t, c)` to `(b·t, c)`.
    pub fn whole(&self, x: &Tensor, sight: &Sight) -> Result<Tensor> {
        let mut sequences = Sequences::Whole {
            batch: sight.batch,
            positions: sight.positions.clone(),
            visibility: sight.visibility.clone(),
        };
        self.forward(x, &mut sequences)
    }

    /// # Shapes
    /// `x` and the result: `(n, c)`, the tokens of all sequences one after the other.
    pub(super) fn forward(&self, x: &Tensor, sequences: &mut Sequences) -> Result<Tensor> {
        let normed = rms_norm(x, &self.input_norm, self.eps)?;
        let x = (x + self.attention.forward(&normed, sequences)?)?;
        let normed = rms_norm(&x, &self.post_norm, self.eps)?;
        let inner = swiglu(
            &self.gate.forward(&normed, None)?,
            &self.up.forward(&normed, None)?,
        )?;
        x + self.down.forward(&inner, None)?
    }
}
