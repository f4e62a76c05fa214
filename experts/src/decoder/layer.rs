//! Decoder layer: pre-norm attention, then a gated feed-forward block.

use acem3_kernels::{Activation, AttentionPass, CacheShape, activate, add_to_sum, swiglu};
use candle::{DType, Result, Tensor};
use candle_nn::VarBuilder;

use super::attention::{AttentionBatch, CachedBatch, DecoderAttention};
use super::batch_layout::BatchLayout;
use super::config::DecoderConfig;
use super::norm::DecoderNorm;
use crate::ops::{AdaptedLinear, RotaryTables};

/// Layer of the decoder.
#[derive(Clone, Debug)]
pub struct DecoderLayer {
    input_norm: DecoderNorm,
    attention: DecoderAttention,
    mlp_norm: DecoderNorm,
    /// Norms of the outputs of attention and MLP (Gemma 3).
    output_norms: Option<[DecoderNorm; 2]>,
    gate: AdaptedLinear,
    up: AdaptedLinear,
    down: AdaptedLinear,
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
        let norm = |name: &str| DecoderNorm::load(vb, config, c, &format!("{name}.weight"));
        let (mlp_norm, output_norms) = if config.gemma.is_some() {
            let output_norms =
                [norm("post_attention_layernorm")?, norm("post_feedforward_layernorm")?];
            (norm("pre_feedforward_layernorm")?, Some(output_norms))
        } else {
            (norm("post_attention_layernorm")?, None)
        };
        Ok(Self {
            input_norm: norm("input_layernorm")?,
            attention: DecoderAttention::load(&vb.pp("self_attn"), config, rotary, window)?,
            mlp_norm,
            output_norms,
            gate: AdaptedLinear::load(&mlp, (inner, c), "gate_proj")?,
            up: AdaptedLinear::load(&mlp, (inner, c), "up_proj")?,
            down: AdaptedLinear::load(&mlp, (c, inner), "down_proj")?,
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
        let dtype = batch.pass.map_or(x.dtype(), AttentionPass::dtype);
        let normed = self.input_norm.forward_to(x, dtype)?;
        self.attention.fill_caches(&normed, batch)
    }

    /// See [`DecoderAttention::cache_shape`].
    pub(super) fn cache_shape(&self, layers: usize) -> CacheShape {
        self.attention.cache_shape(layers)
    }

    /// Returns the number of query heads.
    pub(super) fn heads(&self) -> usize {
        self.attention.heads()
    }

    /// Runs the layer over a batch.
    ///
    /// # Shapes
    /// `x` and the result: `(n, c)`, the sequences one after the other.
    pub(super) fn forward(&self, x: &Tensor, batch: &mut AttentionBatch) -> Result<Tensor> {
        // A pass on a GPU computes in the type of the weights. The sum of the layers stays in f32.
        let inner_dtype = batch.dtype().unwrap_or(x.dtype());
        let normed = self.input_norm.forward_to(x, inner_dtype)?;
        let attended = self.attention.forward(&normed, batch)?;
        let x = add_to_sum(x, &self.apply_output_norm(0, attended)?)?;
        let normed = self.mlp_norm.forward_to(&x, inner_dtype)?;
        let (gate, up) = (self.gate.forward(&normed, None)?, self.up.forward(&normed, None)?);
        let inner = match &self.output_norms {
            Some(_) => (activate(&gate, Activation::GeluPytorchTanh)? * up)?,
            None => swiglu(&gate, &up)?,
        };
        let output = self.down.forward(&inner, None)?;
        add_to_sum(&x, &self.apply_output_norm(1, output)?)
    }

    /// Normalises the output of attention (0) or MLP (1), if the layer has a norm for it.
    fn apply_output_norm(&self, index: usize, output: Tensor) -> Result<Tensor> {
        match self.output_norms.as_ref().and_then(|norms| norms.get(index)) {
            Some(norm) => norm.forward(&output.to_dtype(DType::F32)?),
            None => Ok(output),
        }
    }
}
