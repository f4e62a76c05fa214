//! Multi-head self-attention and cross-attention (Vaswani et al. 2017, §3.2).

use acem3_kernels::softmax;
use candle::{Result, Tensor};
use candle_nn::VarBuilder;

use super::linear::BartLinear;

/// Attention with biases on all four projections.
#[derive(Clone, Debug)]
pub(super) struct BartAttention {
    query: BartLinear,
    key: BartLinear,
    value: BartLinear,
    out: BartLinear,
    heads: usize,
}

impl BartAttention {
    /// Loads the projections.
    pub(super) fn load(vb: &VarBuilder, size: usize, heads: usize) -> Result<Self> {
        let load = |name: &str| BartLinear::load(&vb.pp(name), size, size);
        Ok(Self {
            query: load("q_proj")?,
            key: load("k_proj")?,
            value: load("v_proj")?,
            out: load("out_proj")?,
            heads,
        })
    }

    /// Attends from `x` to `memory`; `mask` is added to the logits before the softmax.
    ///
    /// # Shapes
    /// `x` (b, t, c), `memory` (b, s, c), `mask` (t, s) → (b, t, c).
    pub(super) fn forward(
        &self,
        x: &Tensor,
        memory: &Tensor,
        mask: Option<&Tensor>,
    ) -> Result<Tensor> {
        let (b, t, c) = x.dims3()?;
        let d = c / self.heads;
        let split = |y: Tensor| {
            let t = y.dim(1)?;
            let y = y.reshape((b, t, self.heads, d))?;
            y.transpose(1, 2)?.contiguous()
        };
        let query = split((self.query.forward(x)? / (d as f64).sqrt())?)?; // (b, h, t, d)
        let key = split(self.key.forward(memory)?)?;
        let value = split(self.value.forward(memory)?)?;
        let scores = query.matmul(&key.t()?)?; // (b, h, t, s)
        let scores = match mask {
            Some(mask) => scores.broadcast_add(mask)?,
            None => scores,
        };
        let attended = softmax(&scores)?.matmul(&value)?;
        self.out.forward(&attended.transpose(1, 2)?.reshape((b, t, c))?)
    }
}

/// Returns the causal mask of `t` positions: minus infinity for later positions.
///
/// # Shapes
/// (t, t).
pub(super) fn causal_mask(t: usize, device: &candle::Device) -> Result<Tensor> {
    let mask = |(i, j): (usize, usize)| if j > i { f32::NEG_INFINITY } else { 0.0 };
    let pairs = (0..t).flat_map(|i| (0..t).map(move |j| (i, j)));
    Tensor::from_iter(pairs.map(mask), device)?.reshape((t, t))
}
