//! Attention of complete sequences on the CPU, for training.
//!
//! Tokens of different sequences and branches do not attend to each other. The kernel computes only
//! the scores of tokens that do, and keeps none for the backward pass, which computes them again.

mod backward;
mod causal_span;
mod forward;
mod query_tile;
mod strided_matrix;
#[cfg(test)]
mod tests;
mod token_heads;

use std::sync::Arc;

use candle::{CpuStorage, CustomOp3, Layout, Result, Shape, Storage, Tensor, bail};

use crate::elements::{as_f32_slice, is_cpu_f32};
use backward::Gradients;
pub use causal_span::CausalSpan;
use forward::attend_tiles;
use query_tile::query_tiles;
use token_heads::TokenHeads;

/// Computes the attention of the tokens of spans. A query attends to the prefix of its span, to itself
/// and to the tokens before it in its span. Tokens outside of all spans get zeros. Differentiable.
///
/// Returns `None` for tensors that are not in f32 on the CPU.
///
/// # Shapes
/// `q`: `(n, h, d)`; `k` and `v`: `(n, h_kv, d)`; the result: `(n, h * d)`.
///
/// # Errors
/// Shapes that do not fit each other, or spans outside of the `n` tokens.
pub fn attend_spans(
    [q, k, v]: [&Tensor; 3],
    spans: &Arc<[CausalSpan]>,
    scale: f32,
) -> Result<Option<Tensor>> {
    if ![q, k, v].into_iter().all(is_cpu_f32) {
        return Ok(None);
    }
    let (tokens, heads, head_size) = q.dims3()?;
    let (_, key_heads, _) = k.dims3()?;
    if k.dims() != v.dims()
        || k.dims() != [tokens, key_heads, head_size]
        || key_heads == 0
        || !heads.is_multiple_of(key_heads)
    {
        bail!("attention: queries {:?}, keys {:?}, values {:?}", q.dims(), k.dims(), v.dims());
    }
    if let Some(span) = spans.iter().find(|span| !span.is_within(tokens)) {
        bail!("attention: {span:?} does not fit {tokens} tokens");
    }
    let op = SpanAttention { spans: spans.clone(), scale };
    q.contiguous()?.apply_op3(&k.contiguous()?, &v.contiguous()?, op).map(Some)
}

/// Attention of the tokens of spans.
struct SpanAttention {
    spans: Arc<[CausalSpan]>,
    scale: f32,
}

impl CustomOp3 for SpanAttention {
    fn name(&self) -> &'static str {
        "span-attention"
    }

    fn cpu_fwd(
        &self,
        q: &CpuStorage,
        q_layout: &Layout,
        k: &CpuStorage,
        k_layout: &Layout,
        v: &CpuStorage,
        v_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let heads = |storage, layout: &Layout| {
            TokenHeads::new(as_f32_slice(storage, layout, self.name())?, layout.shape())
        };
        let (q, k, v) = (heads(q, q_layout)?, heads(k, k_layout)?, heads(v, v_layout)?);
        let out = attend_tiles([&q, &k, &v], &query_tiles(&self.spans), self.scale)?;
        let (tokens, heads, head_size) = q_layout.shape().dims3()?;
        Ok((CpuStorage::F32(out), (tokens, heads * head_size).into()))
    }

    fn bwd(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        _: &Tensor,
        upstream: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let upstream = upstream.contiguous()?.reshape(q.shape())?;
        let gradients = with_heads([q, k, v, &upstream], |[q, k, v, upstream]| {
            let mut gradients = Gradients::zeros(q, k);
            for tile in query_tiles(&self.spans) {
                gradients.add_tile([q, k, v], upstream, &tile, self.scale)?;
            }
            Ok(gradients)
        })?;
        let tensor = |values, like: &Tensor| Tensor::from_vec(values, like.shape(), like.device());
        let Gradients { dq, dk, dv } = gradients;
        Ok((Some(tensor(dq, q)?), Some(tensor(dk, k)?), Some(tensor(dv, v)?)))
    }
}

/// Calls a function with the heads of tensors in f32 on the CPU.
fn with_heads<T>(
    tensors: [&Tensor; 4],
    call: impl FnOnce([&TokenHeads; 4]) -> Result<T>,
) -> Result<T> {
    let storages = tensors.map(Tensor::storage_and_layout);
    let heads = |i: usize| {
        let (storage, layout) = &storages[i];
        match &**storage {
            Storage::Cpu(storage) => {
                TokenHeads::new(as_f32_slice(storage, layout, "span-attention")?, layout.shape())
            }
            _ => bail!("span-attention: expected a tensor on the CPU"),
        }
    };
    call([&heads(0)?, &heads(1)?, &heads(2)?, &heads(3)?])
}
