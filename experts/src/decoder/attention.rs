//! Grouped-query attention with rotary positions, with or without KV caches.

use std::ops::Range;
use std::sync::Arc;

use acem3_kernels::{AttendedSequence, AttentionSettings, attend};
use candle::{Result, Tensor, bail};
use candle_nn::VarBuilder;

use super::cache::KvCache;
use super::config::DecoderConfig;
use super::norm::DecoderNorm;
use crate::ops::{AdaptedLinear, AttentionMask, RotaryTables, masked_softmax, rope};

/// Sequences of a forward pass. Their tokens are consecutive rows of the input.
pub(super) enum AttentionBatch<'a> {
    /// Complete sequences of equal length without caches, for training.
    Full { batch_size: usize, positions: Arc<[u32]>, mask: AttentionMask },
    /// New tokens of cached sequences, for generation.
    Cached(CachedBatch<'a>),
}

/// New tokens of sequences with KV caches.
pub(super) struct CachedBatch<'a> {
    pub(super) token_counts: &'a [usize],
    pub(super) positions: Arc<[u32]>,
    pub(super) caches: &'a mut [&'a mut KvCache],
    /// Ranges of positions of each sequence that attend to all tokens of their range.
    pub(super) bidirectional: &'a [Vec<Range<usize>>],
    /// Index of the layer in the caches.
    pub(super) layer: usize,
}

impl CachedBatch<'_> {
    /// Returns the rows of each sequence.
    fn rows(&self) -> impl Iterator<Item = Range<usize>> {
        self.token_counts.iter().scan(0, |end, n| {
            let start = *end;
            *end += n;
            Some(start..*end)
        })
    }

    /// Appends the keys and values `(n, h_kv, d)` of the new tokens to the caches.
    fn append(&mut self, keys: &Tensor, values: &Tensor) -> Result<()> {
        if self.token_counts.len() != self.caches.len() {
            bail!("{} sequences but {} caches", self.token_counts.len(), self.caches.len());
        }
        let rows: Vec<Range<usize>> = self.rows().collect();
        for (rows, cache) in rows.into_iter().zip(self.caches.iter_mut()) {
            let Some(cache) = cache.layers.get_mut(self.layer) else {
                bail!("cache has no layer {}", self.layer);
            };
            cache.append(keys, values, rows)?;
        }
        Ok(())
    }
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
    /// Norms of each head of the queries and of the keys (Gemma 3).
    head_norms: Option<[DecoderNorm; 2]>,
    rotary: RotaryTables,
    /// Factor of the scores.
    scale: f32,
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
        let head_norms = if config.gemma.is_some() {
            let norm = |name: &str| DecoderNorm::load(vb, config, d, name);
            Some([norm("q_norm.weight")?, norm("k_norm.weight")?])
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
            head_norms,
            rotary: rotary.clone(),
            scale: config.attention_scale(),
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
        let positions = match batch {
            AttentionBatch::Full { positions, .. } => positions.clone(),
            AttentionBatch::Cached(batch) => batch.positions.clone(),
        };
        let q = self.query.forward(x, self.bias(0))?;
        let q = q.reshape((x.dim(0)?, self.heads, self.head_size))?;
        let q = self.apply_head_norm(0, q)?;
        let q = rope(&q, &positions, &self.rotary)?;
        let (k, v) = self.project_keys_values(x, &positions)?;
        let attended = match batch {
            AttentionBatch::Full { batch_size, mask, .. } => {
                self.forward_full(&Projected { q, k, v }, *batch_size, mask)?
            }
            AttentionBatch::Cached(batch) => {
                batch.append(&k, &v)?;
                self.forward_cached(&q, batch)?
            }
        };
        self.output.forward(&attended, self.output_bias.as_ref())
    }

    /// Appends the keys and values of new tokens to the caches.
    ///
    /// # Shapes
    /// `x`: `(n, c)`.
    pub(super) fn fill_caches(&self, x: &Tensor, batch: &mut CachedBatch) -> Result<()> {
        let (k, v) = self.project_keys_values(x, &batch.positions)?;
        batch.append(&k, &v)
    }

    /// Returns the bias of query (0), key (1) or value (2).
    fn bias(&self, i: usize) -> Option<&Tensor> {
        self.biases.as_ref().and_then(|biases| biases.get(i))
    }

    /// Computes keys and values of tokens, each `(n, h_kv, d)`.
    fn project_keys_values(&self, x: &Tensor, positions: &Arc<[u32]>) -> Result<(Tensor, Tensor)> {
        let shape = (x.dim(0)?, self.kv_heads, self.head_size);
        let k = self.key.forward(x, self.bias(1))?.reshape(shape)?;
        let v = self.value.forward(x, self.bias(2))?.reshape(shape)?;
        let k = self.apply_head_norm(1, k)?;
        Ok((rope(&k, positions, &self.rotary)?, v))
    }

    /// Normalises each head of the queries (0) or keys (1), if the layer has a norm for it.
    ///
    /// # Shapes
    /// `x` and the result: `(n, h, d)`.
    fn apply_head_norm(&self, index: usize, x: Tensor) -> Result<Tensor> {
        match self.head_norms.as_ref().and_then(|norms| norms.get(index)) {
            Some(norm) => norm.forward(&x),
            None => Ok(x),
        }
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
        let weights = masked_softmax(&scores, t, self.scale, mask, self.window)?;
        self.ungroup(&weights.matmul(&v)?, t)
    }

    /// Computes the attention of each sequence over its own cache. The results do not depend on the
    /// other sequences of the batch.
    fn forward_cached(&self, q: &Tensor, batch: &CachedBatch) -> Result<Tensor> {
        let jobs = batch.rows().zip(batch.caches.iter()).zip(batch.bidirectional);
        let jobs = jobs.filter_map(|((rows, cache), bidirectional)| {
            Some((rows, cache.layers.get(batch.layer)?, bidirectional))
        });
        if q.device().is_cpu() {
            let sequences: Vec<AttendedSequence> = jobs
                .map(|(rows, cache, bidirectional)| AttendedSequence {
                    new_tokens: rows.len(),
                    blocks: cache.blocks(),
                    bidirectional,
                })
                .collect();
            let settings = AttentionSettings { scale: self.scale, window: self.window };
            return attend(q, &sequences, settings);
        }
        let attended = jobs.map(|(rows, cache, bidirectional)| {
            let q = q.narrow(0, rows.start, rows.len())?;
            let mask = if bidirectional.is_empty() {
                AttentionMask::Causal
            } else {
                AttentionMask::Bidirectional(bidirectional.as_slice().into())
            };
            self.attend_tensors(&q, cache.tensors(), &mask)
        });
        Tensor::cat(&attended.collect::<Result<Vec<Tensor>>>()?, 0)
    }

    /// Computes the attention of the new queries `(n, h, d)` of one sequence over its keys and values
    /// `(h_kv, t, d)`, those of the new tokens last.
    fn attend_tensors(
        &self,
        q: &Tensor,
        parts: &[(Tensor, Tensor)],
        mask: &AttentionMask,
    ) -> Result<Tensor> {
        let n = q.dim(0)?;
        let q = self.group(&q.contiguous()?, 1)?.squeeze(0)?; // (h_kv, g·n, d)
        let scores: Vec<Tensor> = parts
            .iter()
            .map(|(keys, _)| q.matmul(&keys.transpose(1, 2)?))
            .collect::<Result<_>>()?;
        let scores = Tensor::cat(&scores, 2)?.unsqueeze(0)?;
        let weights = masked_softmax(&scores, n, self.scale, mask, self.window)?.squeeze(0)?;
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
    use crate::decoder::cache::LayerCache;

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
            let ranges = [2..4, 5..8];
            let sequence = AttendedSequence {
                new_tokens: new,
                blocks: cache.blocks(),
                bidirectional: &ranges,
            };
            let settings = AttentionSettings { scale: attention.scale, window };
            let heads_first = |x: &Tensor| x.transpose(0, 1)?.contiguous();
            let (k, v) = (heads_first(&k)?, heads_first(&v)?);
            let halves = [(0, 5), (5, tokens - 5)].map(|(start, len)| {
                Ok((k.narrow(1, start, len)?.contiguous()?, v.narrow(1, start, len)?.contiguous()?))
            });
            let halves = halves.into_iter().collect::<Result<Vec<_>>>()?;
            let mask = AttentionMask::Bidirectional(ranges.clone().into());
            let composed = attention.attend_tensors(&q, &halves, &mask)?;
            let error = (attend(&q, &[sequence], settings)? - composed)?.abs()?.max_all()?;
            assert!(error.to_scalar::<f32>()? < 1e-6, "{error}");
        }
        Ok(())
    }
}
