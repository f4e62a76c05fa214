//! Grouped-query attention with rotary positions, over whole sequences or over caches.

use std::sync::Arc;

use candle::{Result, Tensor, bail};
use candle_nn::VarBuilder;
use rayon::prelude::*;

use super::cache::{KvCache, LayerCache};
use super::config::DecoderConfig;
use crate::ops::{Projection, Rotary, Visibility, masked_softmax, rope};

/// The sequences whose tokens lie one after the other in a step's rows.
pub(super) enum Sequences<'a> {
    /// Whole sequences of equal length, nothing remembered: training.
    Whole {
        batch: usize,
        positions: Arc<[u32]>,
        visibility: Visibility,
    },
    /// New tokens of sequences that are remembered in caches: judging.
    Cached {
        counts: &'a [usize],
        positions: Arc<[u32]>,
        caches: &'a mut [&'a mut KvCache],
        layer: usize,
    },
}

/// Queries, keys and values of new tokens, rotated by their positions.
struct Projected {
    /// `(n, h, d)`.
    q: Tensor,
    /// `(n, h_kv, d)`.
    k: Tensor,
    /// `(n, h_kv, d)`.
    v: Tensor,
}

#[derive(Clone, Debug)]
pub(super) struct Attention {
    query: Projection,
    key: Projection,
    value: Projection,
    output: Projection,
    /// Of query, key and value.
    biases: Option<[Tensor; 3]>,
    output_bias: Option<Tensor>,
    rotary: Rotary,
    window: Option<usize>,
    heads: usize,
    kv_heads: usize,
    head_size: usize,
}

impl Attention {
    pub(super) fn load(
        vb: &VarBuilder,
        config: &DecoderConfig,
        rotary: &Rotary,
        window: Option<usize>,
    ) -> Result<Self> {
        let (c, d) = (config.hidden_size, config.head_size());
        let (heads, kv_heads) = (config.num_attention_heads, config.kv_heads());
        let biases = if config.attention_bias {
            Some([
                vb.get(heads * d, "q_proj.bias")?,
                vb.get(kv_heads * d, "k_proj.bias")?,
                vb.get(kv_heads * d, "v_proj.bias")?,
            ])
        } else {
            None
        };
        let output_bias = if config.output_bias {
            Some(vb.get(c, "o_proj.bias")?)
        } else {
            None
        };
        Ok(Self {
            query: Projection::load(vb, (heads * d, c), "q_proj")?,
            key: Projection::load(vb, (kv_heads * d, c), "k_proj")?,
            value: Projection::load(vb, (kv_heads * d, c), "v_proj")?,
            output: Projection::load(vb, (c, heads * d), "o_proj")?,
            biases,
            output_bias,
            rotary: rotary.clone(),
            window,
            heads,
            kv_heads,
            head_size: d,
        })
    }

    /// # Shapes
    /// `x` and the result: `(n, c)`.
    pub(super) fn forward(&self, x: &Tensor, sequences: &mut Sequences) -> Result<Tensor> {
        let (n, d) = (x.dim(0)?, self.head_size);
        let positions = match sequences {
            Sequences::Whole { positions, .. } | Sequences::Cached { positions, .. } => {
                positions.clone()
            }
        };
        let bias = |i: usize| self.biases.as_ref().and_then(|biases| biases.get(i));
        let q = self
            .query
            .forward(x, bias(0))?
            .reshape((n, self.heads, d))?;
        let k = self
            .key
            .forward(x, bias(1))?
            .reshape((n, self.kv_heads, d))?;
        let v = self
            .value
            .forward(x, bias(2))?
            .reshape((n, self.kv_heads, d))?;
        let projected = Projected {
            q: rope(&q, &positions, &self.rotary)?,
            k: rope(&k, &positions, &self.rotary)?,
            v,
        };
        let mixed = match sequences {
            Sequences::Whole {
                batch, visibility, ..
            } => self.whole(&projected, *batch, visibility)?,
            Sequences::Cached {
                counts,
                caches,
                layer,
                ..
            } => {
                let layer = *layer;
                self.cached(&projected, counts, caches, layer)?
            }
        };
        self.output.forward(&mixed, self.output_bias.as_ref())
    }

    /// Query heads grouped under their key head: `(b·t, h, d)` to `(b, h_kv, g·t, d)`.
    fn group(&self, q: &Tensor, batch: usize) -> Result<Tensor> {
        let (t, d) = (q.dim(0)? / batch, self.head_size);
        let groups = self.heads / self.kv_heads;
        q.reshape((batch, t, self.kv_heads, groups, d))?
            .permute((0, 2, 3, 1, 4))?
            .contiguous()?
            .reshape((batch, self.kv_heads, groups * t, d))
    }

    /// The inverse of [`Self::group`], heads joined: `(b, h_kv, g·t, d)` to `(b·t, h·d)`.
    fn ungroup(&self, mixed: &Tensor, t: usize) -> Result<Tensor> {
        let batch = mixed.dim(0)?;
        let groups = self.heads / self.kv_heads;
        mixed
            .reshape((batch, self.kv_heads, groups, t, self.head_size))?
            .permute((0, 3, 1, 2, 4))?
            .contiguous()?
            .reshape((batch * t, self.heads * self.head_size))
    }

    fn scale(&self) -> f32 {
        1.0 / (self.head_size as f32).sqrt()
    }

    fn whole(
        &self,
        projected: &Projected,
        batch: usize,
        visibility: &Visibility,
    ) -> Result<Tensor> {
        let Projected { q, k, v } = projected;
        let (t, d) = (q.dim(0)? / batch, self.head_size);
        let keyed = |x: &Tensor| {
            x.reshape((batch, t, self.kv_heads, d))?
                .transpose(1, 2)?
                .contiguous()
        };
        let (q, k, v) = (self.group(q, batch)?, keyed(k)?, keyed(v)?);
        let scores = q.matmul(&k.transpose(2, 3)?)?;
        let weights = masked_softmax(&scores, t, self.scale(), visibility, self.window)?;
        self.ungroup(&weights.matmul(&v)?, t)
    }

    /// Each sequence attends to its own cache; sequences are independent, so they run in parallel
    /// and the result does not depend on which others share the step.
    fn cached(
        &self,
        projected: &Projected,
        counts: &[usize],
        caches: &mut [&mut KvCache],
        layer: usize,
    ) -> Result<Tensor> {
        let Projected { q, k, v } = projected;
        if counts.len() != caches.len() {
            bail!("{} sequences but {} caches", counts.len(), caches.len());
        }
        let starts = counts
            .iter()
            .scan(0, |sum, n| Some(std::mem::replace(sum, *sum + n)));
        let jobs: Vec<(usize, usize, &mut LayerCache)> = starts
            .zip(counts)
            .zip(caches.iter_mut())
            .map(|((start, n), cache)| {
                let cache = cache.layers.get_mut(layer);
                cache
                    .map(|c| (start, *n, c))
                    .ok_or_else(|| candle::Error::Msg(format!("cache has no layer {layer}")))
            })
            .collect::<Result<_>>()?;
        let mixed: Vec<Tensor> = jobs
            .into_par_iter()
            .map(|(start, n, cache)| {
                let keyed = |x: &Tensor| x.narrow(0, start, n)?.transpose(0, 1)?.contiguous();
                cache.append(keyed(k)?, keyed(v)?)?;
                self.attend(&q.narrow(0, start, n)?, cache)
            })
            .collect::<Result<_>>()?;
        Tensor::cat(&mixed, 0)
    }

    /// New queries `(n, h, d)` of one sequence over its cache, their own keys included.
    fn attend(&self, q: &Tensor, cache: &LayerCache) -> Result<Tensor> {
        let n = q.dim(0)?;
        let q = self.group(&q.contiguous()?, 1)?.squeeze(0)?; // (h_kv, g·n, d)
        let scores: Vec<Tensor> = cache
            .parts()
            .iter()
            .map(|(keys, _)| q.matmul(&keys.transpose(1, 2)?))
            .collect::<Result<_>>()?;
        let scores = Tensor::cat(&scores, 2)?.unsqueeze(0)?;
        let causal = &Visibility::Causal;
        let weights = masked_softmax(&scores, n, self.scale(), causal, self.window)?.squeeze(0)?;
        let mut mixed: Option<Tensor> = None;
        let mut place = 0;
        for (_, values) in cache.parts() {
            let t = values.dim(1)?;
            let part = weights.narrow(2, place, t)?.contiguous()?.matmul(values)?;
            mixed = Some(match mixed {
                Some(sum) => (sum + part)?,
                None => part,
            });
            place += t;
        }
        let Some(mixed) = mixed else {
            bail!("attention over an empty cache")
        };
        self.ungroup(&mixed.unsqueeze(0)?, n)
    }
}
