//! Transformer block: attention and MLP, each with a layer norm before it and a residual
//! connection.

use acem3_kernels::{Activation, LayerNorm, activate};
use candle::{Result, Tensor};
use candle_nn::{Init, VarBuilder};

use super::attention::VitAttention;
use super::linear::VitLinear;
use crate::config::VisionConfig;

/// A pre-norm transformer block.
#[derive(Clone, Debug)]
pub(super) struct VitBlock {
    attention_norm: LayerNorm,
    attention: VitAttention,
    mlp_norm: LayerNorm,
    mlp_up: VitLinear,
    mlp_down: VitLinear,
    activation: Activation,
    /// Factors of the outputs of attention and MLP.
    layer_scales: Option<[Tensor; 2]>,
}

impl VitBlock {
    /// Loads `layer_norm1`, `self_attn`, `layer_norm2`, `mlp` and, if the variant has them,
    /// `layer_scale1` and `layer_scale2`.
    pub(super) fn load(vb: &VarBuilder, config: &VisionConfig) -> Result<Self> {
        let (c, inner, eps) = (config.hidden_size, config.intermediate_size, config.layer_norm_eps);
        let scale = |name: &str| vb.get_with_hints(c, name, Init::Const(1.));
        let scales = if config.variant.layer_scale {
            Some([scale("layer_scale1")?, scale("layer_scale2")?])
        } else {
            None
        };
        Ok(Self {
            attention_norm: LayerNorm::load(&vb.pp("layer_norm1"), c, eps)?,
            attention: VitAttention::load(&vb.pp("self_attn"), config)?,
            mlp_norm: LayerNorm::load(&vb.pp("layer_norm2"), c, eps)?,
            mlp_up: VitLinear::load(&vb.pp("mlp.fc1"), c, inner)?,
            mlp_down: VitLinear::load(&vb.pp("mlp.fc2"), inner, c)?,
            activation: config.hidden_act,
            layer_scales: scales,
        })
    }

    /// Runs the block.
    ///
    /// # Shapes
    /// (b, t, c) → (b, t, c).
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (b, t, c) = x.dims3()?;
        let attended = self.attention.forward(&self.attention_norm.forward(x)?)?;
        let x = (x + self.apply_layer_scale(0, attended)?)?;
        let y = self.mlp_norm.forward(&x)?.reshape((b * t, c))?;
        let y = self.mlp_down.forward(&activate(&self.mlp_up.forward(&y)?, self.activation)?)?;
        x + self.apply_layer_scale(1, y.reshape((b, t, c))?)?
    }

    fn apply_layer_scale(&self, index: usize, y: Tensor) -> Result<Tensor> {
        match self.layer_scales.as_ref().and_then(|scales| scales.get(index)) {
            Some(scale) => y.broadcast_mul(scale),
            None => Ok(y),
        }
    }
}
