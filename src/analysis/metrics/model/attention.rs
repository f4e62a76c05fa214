//! Multi-head attention (Vaswani et al. 2017, §3.2) of one sequence to itself or to another.

use acem3_vision::ops::softmax;
use candle::{Result, Tensor};
use candle_nn::VarBuilder;

use super::Linear;

/// Attention with biases on all four projections.
#[derive(Clone, Debug)]
pub(super) struct Attention {
    query: Linear,
    key: Linear,
    value: Linear,
    out: Linear,
    heads: usize,
}

impl Attention {
    /// Loads the projections of queries, keys, values and the output under these names.
    pub(super) fn load(
        vb: &VarBuilder,
        [query, key, value, out]: [&str; 4],
        size: usize,
        heads: usize,
    ) -> Result<Self> {
        let load = |name| Linear::load(&vb.pp(name), size, size);
        Ok(Self {
            query: load(query)?,
            key: load(key)?,
            value: load(value)?,
            out: load(out)?,
            heads,
        })
    }

    /// Attends from `x` to `memory`; `hidden` is added to the weights before they become shares.
    ///
    /// # Shapes
    /// `x` (b, t, c), `memory` (b, s, c), `hidden` (t, s) → (b, t, c).
    pub(super) fn forward(
        &self,
        x: &Tensor,
        memory: &Tensor,
        hidden: Option<&Tensor>,
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
        let scores = match hidden {
            Some(hidden) => scores.broadcast_add(hidden)?,
            None => scores,
        };
        let mixed = softmax(&scores)?.matmul(&value)?;
        self.out
            .forward(&mixed.transpose(1, 2)?.reshape((b, t, c))?)
    }
}

/// What hides from each of `t` places those behind it.
///
/// # Shapes
/// (t, t).
pub(super) fn causal(t: usize, device: &candle::Device) -> Result<Tensor> {
    let hidden = |(i, j): (usize, usize)| if j > i { f32::NEG_INFINITY } else { 0.0 };
    let places = (0..t).flat_map(|i| (0..t).map(move |j| (i, j)));
    Tensor::from_iter(places.map(hidden), device)?.reshape((t, t))
}
