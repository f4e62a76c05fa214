//! Multi-head self-attention, every token to every token (Vaswani et al. 2017, §3.2).

use acem3_kernels::softmax;
use candle::{Result, Tensor};
use candle_nn::VarBuilder;

use super::linear::Linear;
use crate::config::VisionConfig;

/// Self-attention with biases on all four projections.
#[derive(Clone, Debug)]
pub(super) struct Attention {
    q: Linear,
    k: Linear,
    v: Linear,
    out: Linear,
    heads: usize,
    head_size: usize,
}

impl Attention {
    /// Loads `q_proj`, `k_proj` and `v_proj`, or all three from `qkv_proj`, and `out_proj`.
    pub(super) fn load(vb: &VarBuilder, config: &VisionConfig) -> Result<Self> {
        let c = config.hidden_size;
        let heads = config.num_attention_heads;
        let [q, k, v] = if config.form.fused_qkv {
            let fused = Linear::load(&vb.pp("qkv_proj"), c, 3 * c)?;
            [
                fused.outputs(0, c)?,
                fused.outputs(c, c)?,
                fused.outputs(2 * c, c)?,
            ]
        } else {
            [
                Linear::load(&vb.pp("q_proj"), c, c)?,
                Linear::load(&vb.pp("k_proj"), c, c)?,
                Linear::load(&vb.pp("v_proj"), c, c)?,
            ]
        };
        Ok(Self {
            q,
            k,
            v,
            out: Linear::load(&vb.pp("out_proj"), c, c)?,
            heads,
            head_size: c / heads,
        })
    }

    /// Attends.
    ///
    /// # Shapes
    /// (b, t, c) → (b, t, c).
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (b, t, c) = x.dims3()?;
        let x = x.reshape((b * t, c))?;
        let split = |y: Tensor| {
            y.reshape((b, t, self.heads, self.head_size))?
                .transpose(1, 2)?
                .contiguous()
        };
        let scale = 1. / (self.head_size as f64).sqrt();
        let q = split((self.q.forward(&x)? * scale)?)?; // (b, h, t, d)
        let k = split(self.k.forward(&x)?)?;
        let v = split(self.v.forward(&x)?)?;
        let weights = softmax(&q.matmul(&k.t()?)?)?; // (b, h, t, t)
        let mixed = weights.matmul(&v)?.transpose(1, 2)?.reshape((b * t, c))?;
        self.out.forward(&mixed)?.reshape((b, t, c))
    }
}
