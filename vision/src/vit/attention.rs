//! Multi-head self-attention without a mask (Vaswani et al. 2017, §3.2).

use acem3_kernels::{attend_unmasked, softmax};
use candle::{Result, Tensor};
use candle_nn::VarBuilder;

use super::linear::VitLinear;
use crate::config::VisionConfig;

/// Self-attention with biases on all four projections.
#[derive(Clone, Debug)]
pub(super) struct VitAttention {
    q: VitLinear,
    k: VitLinear,
    v: VitLinear,
    out: VitLinear,
    heads: usize,
    head_size: usize,
}

impl VitAttention {
    /// Loads `out_proj` and either `q_proj`, `k_proj` and `v_proj` or the fused `qkv_proj`.
    pub(super) fn load(vb: &VarBuilder, config: &VisionConfig) -> Result<Self> {
        let c = config.hidden_size;
        let heads = config.num_attention_heads;
        let [q, k, v] = if config.variant.fused_qkv {
            let fused = VitLinear::load(&vb.pp("qkv_proj"), c, 3 * c)?;
            [
                fused.select_outputs(0, c)?,
                fused.select_outputs(c, c)?,
                fused.select_outputs(2 * c, c)?,
            ]
        } else {
            [
                VitLinear::load(&vb.pp("q_proj"), c, c)?,
                VitLinear::load(&vb.pp("k_proj"), c, c)?,
                VitLinear::load(&vb.pp("v_proj"), c, c)?,
            ]
        };
        Ok(Self {
            q,
            k,
            v,
            out: VitLinear::load(&vb.pp("out_proj"), c, c)?,
            heads,
            head_size: c / heads,
        })
    }

    /// Computes self-attention of all tokens of each image.
    ///
    /// # Shapes
    /// (b, t, c) → (b, t, c).
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (b, t, c) = x.dims3()?;
        let x = x.reshape((b * t, c))?;
        let project = |layer: &VitLinear| {
            layer.forward(&x)?.reshape((b, t, self.heads, self.head_size)) // (b, t, h, d)
        };
        let (q, k, v) = (project(&self.q)?, project(&self.k)?, project(&self.v)?);
        let scale = 1. / (self.head_size as f64).sqrt();
        let attended = if q.device().is_cpu() && ![&q, &k, &v].iter().any(|x| x.track_op()) {
            attend_unmasked([&q, &k, &v], scale as f32)?
        } else {
            let by_head = |x: &Tensor| x.transpose(1, 2)?.contiguous(); // (b, h, t, d)
            let scores = by_head(&(q * scale)?)?.matmul(&by_head(&k)?.t()?)?; // (b, h, t, t)
            let attended = softmax(&scores)?.matmul(&by_head(&v)?)?;
            attended.transpose(1, 2)?.reshape((b * t, c))?
        };
        self.out.forward(&attended)?.reshape((b, t, c))
    }
}
