//! One block of the encoder: attention and MLP, each behind a layer norm and added to its input.

use candle::{Result, Tensor};
use candle_nn::VarBuilder;

use super::attention::Attention;
use super::linear::Linear;
use crate::config::{HiddenAct, VisionConfig};
use crate::ops::{LayerNorm, activate};

/// A pre-norm transformer block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    attention_norm: LayerNorm,
    attention: Attention,
    mlp_norm: LayerNorm,
    up: Linear,
    down: Linear,
    act: HiddenAct,
}

impl Block {
    /// Loads `layer_norm1`, `self_attn`, `layer_norm2` and `mlp`.
    pub(super) fn load(vb: &VarBuilder, config: &VisionConfig) -> Result<Self> {
        let (c, inner, eps) = (
            config.hidden_size,
            config.intermediate_size,
            config.layer_norm_eps,
        );
        Ok(Self {
            attention_norm: LayerNorm::load(&vb.pp("layer_norm1"), c, eps)?,
            attention: Attention::load(&vb.pp("self_attn"), config)?,
            mlp_norm: LayerNorm::load(&vb.pp("layer_norm2"), c, eps)?,
            up: Linear::load(&vb.pp("mlp.fc1"), c, inner)?,
            down: Linear::load(&vb.pp("mlp.fc2"), inner, c)?,
            act: config.hidden_act,
        })
    }

    /// Runs the block.
    ///
    /// # Shapes
    /// (b, t, c) → (b, t, c).
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (b, t, c) = x.dims3()?;
        let x = (x + self.attention.forward(&self.attention_norm.forward(x)?)?)?;
        let y = self.mlp_norm.forward(&x)?.reshape((b * t, c))?;
        let y = self
            .down
            .forward(&activate(&self.up.forward(&y)?, self.act)?)?;
        x + y.reshape((b, t, c))?
    }
}
