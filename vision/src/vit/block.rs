//! One block of the encoder: attention and MLP, each behind a layer norm and added to its input.

use acem3_kernels::{Activation, LayerNorm, activate};
use candle::{Result, Tensor};
use candle_nn::{Init, VarBuilder};

use super::attention::Attention;
use super::linear::Linear;
use crate::config::VisionConfig;

/// A pre-norm transformer block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    attention_norm: LayerNorm,
    attention: Attention,
    mlp_norm: LayerNorm,
    up: Linear,
    down: Linear,
    activation: Activation,
    /// Factors of what attention and MLP add.
    scales: Option<[Tensor; 2]>,
}

impl Block {
    /// Loads `layer_norm1`, `self_attn`, `layer_norm2`, `mlp` and, in that form, `layer_scale1` and
    /// `layer_scale2`.
    pub(super) fn load(vb: &VarBuilder, config: &VisionConfig) -> Result<Self> {
        let (c, inner, eps) = (
            config.hidden_size,
            config.intermediate_size,
            config.layer_norm_eps,
        );
        let scale = |name: &str| vb.get_with_hints(c, name, Init::Const(1.));
        let scales = if config.form.layer_scale {
            Some([scale("layer_scale1")?, scale("layer_scale2")?])
        } else {
            None
        };
        Ok(Self {
            attention_norm: LayerNorm::load(&vb.pp("layer_norm1"), c, eps)?,
            attention: Attention::load(&vb.pp("self_attn"), config)?,
            mlp_norm: LayerNorm::load(&vb.pp("layer_norm2"), c, eps)?,
            up: Linear::load(&vb.pp("mlp.fc1"), c, inner)?,
            down: Linear::load(&vb.pp("mlp.fc2"), inner, c)?,
            activation: config.hidden_act,
            scales,
        })
    }

    /// Runs the block.
    ///
    /// # Shapes
    /// (b, t, c) → (b, t, c).
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (b, t, c) = x.dims3()?;
        let mixed = self.attention.forward(&self.attention_norm.forward(x)?)?;
        let x = (x + self.scaled(0, mixed)?)?;
        let y = self.mlp_norm.forward(&x)?.reshape((b * t, c))?;
        let y = self
            .down
            .forward(&activate(&self.up.forward(&y)?, self.activation)?)?;
        x + self.scaled(1, y.reshape((b, t, c))?)?
    }

    fn scaled(&self, which: usize, added: Tensor) -> Result<Tensor> {
        match self.scales.as_ref().and_then(|scales| scales.get(which)) {
            Some(scale) => added.broadcast_mul(scale),
            None => Ok(added),
        }
    }
}
