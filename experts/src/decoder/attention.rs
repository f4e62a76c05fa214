//! Grouped-query attention with rotary positions, with or without KV caches.

use std::ops::Range;
use std::sync::Arc;

use acem3_kernels::{AttendedSequence, AttentionSettings, attend};
use candle::{Result, Tensor, bail};
use candle_nn::VarBuilder;

use super::cache::{KvCache, LayerCache};
use super::config::DecoderConfig;
use crate::ops::{AdaptedLinear, AttentionMask, RotaryTables, masked_softmax, rope};

/// Sequences of a forward pass. Their tokens are consecutive rows of the input.
pub(super) enum AttentionBatch<'a> {
    /// Complete sequences of equal length without caches, for training.
    Full { batch_size: usize, positions: Arc<[u32]>, mask: AttentionMask },
    /// New tokens of cached sequences, for generation.
    Cached {
        token_counts: &'a [usize],
        positions: Arc<[u32]>,
        caches: &'a mut [&'a mut KvCache],
        /// Index of the layer in the caches.
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

/// Attention block of a decoder layer.
#[derive(Clone, Debug)]
pub(super) struct DecoderAttention {
    query: AdaptedLinear,
    key: AdaptedLinear,
    value: AdaptedLinear,
    output: AdaptedLinear,
    /// Biases of query, key and value.
    biases: Option<[Tensor; 3]>,
    output_bias: Option<Tensor>,
    rotary: RotaryTables,
    /// Sliding window, in tokens.
    window: Option<usize>,
    heads: usize,
    kv_heads: usize,
    head_size: usize,
}

impl DecoderAttention {
    pub(super) fn load(
        vb: &VarBuilder,
        config: &DecoderConfig,
        rotary: &RotaryTables,
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
        let output_bias = if config.output_bias { Some(vb.get(c, "o_proj.bias")?) } else { None };
        Ok(Self {
            query: AdaptedLinear::load(vb, (heads * d, c), "q_proj")?,
            key: AdaptedLinear::load(vb, (kv_heads * d, c), "k_proj")?,
            value: AdaptedLinear::load(vb, (kv_heads * d, c), "v_proj")?,
            output: AdaptedLinear::load(vb, (c, heads * d), "o_proj")?,
            biases,
            output_bias,
            rotary: rotary.clone(),
            window,
            heads,
            kv_heads,
            head_size: d,
        })
    }

    /// Computes the attention output of the tokens of a batch.
    ///
    /// # Shapes
    /// `x` and the result: `(n, c)`.
    pub(super) fn forward(&self, x: &Tensor, batch: &mut AttentionBatch) -> Result<Tensor> {
        let (n, d) = (x.dim(0)?, self.head_size);
        let positions = match batch {
            AttentionBatch::Full { positions, .. } | AttentionBatch::Cached { positions, .. } => {
                positions.clone()
            }
        };
        let bias = |i: usize| self.biases.as_ref().and_then(|biases| biases.get(i));
        let q = self.query.forward(x, bias(0))?.reshape((n, self.heads, d))?;
        let k = self.key.forward(x, bias(1))?.reshape((n, self.kv_heads, d))?;
        let v = self.value.forward(x, bias(2))?.reshape((n, self.kv_heads, d))?;
        let projected = Projected {
            q: rope(&q, &positions, &self.rotary)?,
            k: rope(&k, &positions, &self.rotary)?,
            v,
        };
        let attended = match batch {
            AttentionBatch::Full { batch_size, mask, .. } => {
                self.forward_full(&projected, *batch_size, mask)?
            }
            AttentionBatch::Cached { token_counts, caches, layer, .. } => {
                self.forward_cached(&projected, token_counts, caches, *layer)?
            }
        };
        self.output.forward(&attended, self.output_bias.as_ref())
    }

    /// Groups the query heads by key head: `(b·t, h, d)` to `(b, h_kv, g·t, d)`.
    fn group(&self, q: &Tensor, batch_size: usize) -> Result<Tensor> {
        let (t, d) = (q.dim(0)? / batch_size, self.head_size);
        let groups = self.heads / self.kv_heads;
        q.reshape((batch_size, t, self.kv_heads, groups, d))?
            .permute((0, 2, 3, 1, 4))?
            .contiguous()?
            .reshape((batch_size, self.kv_heads, groups * t, d))
    }

    /// Inverts [`Self::group`] and joins the heads: `(b, h_kv, g·t, d)` to `(b·t, h·d)`.
    fn ungroup(&self, attended: &Tensor, t: usize) -> Result<Tensor> {
        let batch_size = attended.dim(0)?;
        let groups = self.heads / self.kv_heads;
        attended
            .reshape((batch_size, self.kv_heads, groups, t, self.head_size))?
            .permute((0, 3, 1, 2, 4))?
            .contiguous()?
            .reshape((batch_size * t, self.heads * self.head_size))
    }

    /// Returns the factor of the scores, `1 / sqrt(d)`.
    fn scale(&self) -> f32 {
        1.0 / (self.head_size as f32).sqrt()
    }

    /// Computes the attention of complete sequences over themselves.
    fn forward_full(
        &self,
        projected: &Projected,
        batch_size: usize,
        mask: &AttentionMask,
    ) -> Result<Tensor> {
        let Projected { q, k, v } = projected;
        let (t, d) = (q.dim(0)? / batch_size, self.head_size);
        let split_heads = |x: &Tensor| {
            x.reshape((batch_size, t, self.kv_heads, d))?.transpose(1, 2)?.contiguous()
        };
        let (q, k, v) = (self.group(q, batch_size)?, split_heads(k)?, split_heads(v)?);
        let scores = q.matmul(&k.transpose(2, 3)?)?;
        let weights = masked_softmax(&scores, t, self.scale(), mask, self.window)?;
        self.ungroup(&weights.matmul(&v)?, t)
    }

    /// Computes the attention of each sequence over its own cache. The results do not depend on the
    /// other sequences of the batch.
    fn forward_cached(
        &self,
        projected: &Projected,
        token_counts: &[usize],
        caches: &mut [&mut KvCache],
        layer: usize,
    ) -> Result<Tensor> {
        let Projected { q, k, v } = projected;
        if token_counts.len() != caches.len() {
            bail!("{} sequences but {} caches", token_counts.len(), caches.len());
        }
        let mut start = 0;
        let mut jobs: Vec<(Range<usize>, &LayerCache)> = Vec::with_capacity(caches.len());
        for (n, cache) in token_counts.iter().zip(caches) {
            let Some(cache) = cache.layers.get_mut(layer) else {
                bail!("cache has no layer {layer}");
            };
            let rows = start..start + n;
            start = rows.end;
            cache.append(k, v, rows.clone())?;
            jobs.push((rows, &*cache));
        }
        if q.device().is_cpu() {
            let sequences: Vec<AttendedSequence> = jobs
                .into_iter()
                .map(|(rows, cache)| AttendedSequence {
                    new_tokens: rows.len(),
                    blocks: cache.blocks(),
                })
                .collect();
            let settings = AttentionSettings { scale: self.scale(), window: self.window };
            return attend(q, &sequences, settings);
        }
        let attended = jobs.into_iter().map(|(rows, cache)| {
            let q = q.narrow(0, rows.start, rows.len())?;
            self.attend_tensors(&q, cache.tensors())
        });
        Tensor::cat(&attended.collect::<Result<Vec<Tensor>>>()?, 0)
    }

    /// Computes the attention of the new queries `(n, h, d)` of one sequence over its keys and values
    /// `(h_kv, t, d)`, those of the new tokens last.
    fn attend_tensors(&self, q: &Tensor, parts: &[(Tensor, Tensor)]) -> Result<Tensor> {
        let n = q.dim(0)?;
        let q = self.group(&q.contiguous()?, 1)?.squeeze(0)?; // (h_kv, g·n, d)
        let scores: Vec<Tensor> = parts
            .iter()
            .map(|(keys, _)| q.matmul(&keys.transpose(1, 2)?))
            .collect::<Result<_>>()?;
        let scores = Tensor::cat(&scores, 2)?.unsqueeze(0)?;
        let causal = &AttentionMask::Causal;
        let weights = masked_softmax(&scores, n, self.scale(), causal, self.window)?.squeeze(0)?;
        let mut attended: Option<Tensor> = None;
        let mut start = 0;
        for (_, values) in parts {
            let t = values.dim(1)?;
            let part = weights.narrow(2, start, t)?.contiguous()?.matmul(values)?;
            attended = Some(match attended {
                Some(sum) => (sum + part)?,
                None => part,
            });
            start += t;
        }
        let Some(attended) = attended else { bail!("attention over an empty cache") };
        self.ungroup(&attended.unsqueeze(0)?, n)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use candle::{DType, Device};

    use super::*;

    /// Other devices use the composed attention. Here both run on the CPU.
    #[test]
    fn composed_attention_matches_the_kernel() -> Result<()> {
        let (c, inner, tokens, new) = (24, 48, 9, 3);
        for window in [None, Some(4)] {
            let config: DecoderConfig = serde_json::from_value(serde_json::json!({
                "vocab_size": 8, "hidden_size": c, "intermediate_size": inner,
                "num_hidden_layers": 1, "num_attention_heads": 6, "num_key_value_heads": 2,
                "max_position_embeddings": 16, "rms_norm_eps": 1e-6, "rope_theta": 1e4,
            }))
            .map_err(candle::Error::wrap)?;
            let d = config.head_size();
            let weight = |rows| Tensor::randn(0f32, 1., (rows, c), &Device::Cpu);
            let names = [("q_proj", c), ("k_proj", 2 * d), ("v_proj", 2 * d), ("o_proj", c)];
            let tensors = names
                .map(|(name, rows)| Ok((format!("{name}.weight"), weight(rows)?)))
                .into_iter()
                .collect::<Result<HashMap<_, _>>>()?;
            let vb = VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu);
            let rotary = RotaryTables::with_scaled_periods(d, 16, 1e4, |_, period| period);
            let attention = DecoderAttention::load(&vb, &config, &rotary, window)?;
            let random = |n, heads| Tensor::randn(0f32, 1., (n, heads, d), &Device::Cpu);
            let (q, k, v) = (random(new, 6)?, random(tokens, 2)?, random(tokens, 2)?);
            let mut cache = LayerCache::default();
            cache.append(&k, &v, 0..tokens)?;
            let sequence = AttendedSequence { new_tokens: new, blocks: cache.blocks() };
            let settings = AttentionSettings { scale: attention.scale(), window };
            let heads_first = |x: &Tensor| x.transpose(0, 1)?.contiguous();
            let (k, v) = (heads_first(&k)?, heads_first(&v)?);
            let halves = [(0, 5), (5, tokens - 5)].map(|(start, len)| {
                Ok((k.narrow(1, start, len)?.contiguous()?, v.narrow(1, start, len)?.contiguous()?))
            });
            let halves = halves.into_iter().collect::<Result<Vec<_>>>()?;
            let composed = attention.attend_tensors(&q, &halves)?;
            let error = (attend(&q, &[sequence], settings)? - composed)?.abs()?.max_all()?;
            assert!(error.to_scalar::<f32>()? < 1e-6, "{error}");
        }
        Ok(())
    }
}
