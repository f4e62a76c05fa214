//! Grouped-query attention with rotary positions, with or without KV caches.

use std::ops::Range;
use std::sync::Arc;

use acem3_kernels::{
    AttendedSequence, AttentionPass, AttentionSettings, CacheShape, NewHeads, attend, attend_spans,
};
use candle::{DType, Result, Tensor, bail};
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

impl AttentionBatch<'_> {
    /// Returns the type of the activations of a pass on a GPU.
    pub(super) fn dtype(&self) -> Option<DType> {
        match self {
            Self::Full { .. } => None,
            Self::Cached(batch) => batch.pass.map(AttentionPass::dtype),
        }
    }
}

/// New tokens of sequences with KV caches.
pub(super) struct CachedBatch<'a> {
    pub(super) token_counts: &'a [usize],
    pub(super) positions: Arc<[u32]>,
    pub(super) caches: &'a mut [&'a mut KvCache],
    /// Ranges of positions of each sequence that attend to all tokens of their range.
    pub(super) bidirectional: &'a [Vec<Range<usize>>],
    /// The pass on a GPU. It replaces the caches on the CPU.
    pub(super) pass: Option<&'a AttentionPass>,
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
        let q = self.query.forward(x, self.bias(0))?;
        let q = q.reshape((x.dim(0)?, self.heads, self.head_size))?;
        let q = self.apply_head_norm(0, q)?;
        let (k, v) = self.project_keys_values(x)?;
        let attended = match batch {
            AttentionBatch::Full { batch_size, positions, mask } => {
                let (q, k) = (self.rotate(&q, positions)?, self.rotate(&k, positions)?);
                self.forward_full(&Projected { q, k, v }, *batch_size, mask)?
            }
            AttentionBatch::Cached(batch) => {
                if let Some(pass) = batch.pass {
                    self.forward_pass(&Projected { q, k, v }, pass, batch.layer)?
                } else {
                    let q = self.rotate(&q, &batch.positions)?;
                    batch.append(&self.rotate(&k, &batch.positions)?, &v)?;
                    self.forward_cached(&q, batch)?
                }
            }
        };
        self.output.forward(&attended, self.output_bias.as_ref())
    }

    /// Appends the keys and values of new tokens to the caches.
    ///
    /// # Shapes
    /// `x`: `(n, c)`.
    pub(super) fn fill_caches(&self, x: &Tensor, batch: &mut CachedBatch) -> Result<()> {
        let (k, v) = self.project_keys_values(x)?;
        match batch.pass {
            Some(pass) => {
                let tables = &self.rotary.on_device(k.device())?;
                pass.fill(batch.layer, &NewHeads { k: &k, v: &v, tables })
            }
            None => batch.append(&self.rotate(&k, &batch.positions)?, &v),
        }
    }

    /// Returns the shape of the cache of a stack of such layers, in the type of the weights.
    pub(super) fn cache_shape(&self, layers: usize) -> CacheShape {
        let (kv_heads, head_size) = (self.kv_heads, self.head_size);
        let (dtype, device) = self.key.matrix().placement();
        CacheShape { layers, kv_heads, head_size, dtype, device }
    }

    /// Returns the number of query heads.
    pub(super) fn heads(&self) -> usize {
        self.heads
    }

    /// Rotates the heads of tokens by their positions.
    fn rotate(&self, x: &Tensor, positions: &Arc<[u32]>) -> Result<Tensor> {
        rope(x, positions, &self.rotary)
    }

    /// Computes the attention of new tokens on a GPU.
    fn forward_pass(
        &self,
        projected: &Projected,
        pass: &AttentionPass,
        layer: usize,
    ) -> Result<Tensor> {
        let Projected { q, k, v } = projected;
        let tables = &self.rotary.on_device(k.device())?;
        let q = pass.store(layer, q, &NewHeads { k, v, tables })?;
        pass.attend(layer, &q, AttentionSettings { scale: self.scale, window: self.window })
    }

    /// Returns the bias of query (0), key (1) or value (2).
    fn bias(&self, i: usize) -> Option<&Tensor> {
        self.biases.as_ref().and_then(|biases| biases.get(i))
    }

    /// Computes keys and values of tokens, each `(n, h_kv, d)`, before the rotation.
    fn project_keys_values(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        let shape = (x.dim(0)?, self.kv_heads, self.head_size);
        let k = self.key.forward(x, self.bias(1))?.reshape(shape)?;
        let v = self.value.forward(x, self.bias(2))?.reshape(shape)?;
        Ok((self.apply_head_norm(1, k)?, v))
    }

    /// Normalises each head of the queries (0) or keys (1), if the layer has a norm for it.
    ///
    /// # Shapes
    /// `x` and the result: `(n, h, d)`.
    fn apply_head_norm(&self, index: usize, x: Tensor) -> Result<Tensor> {
        match self.head_norms.as_ref().and_then(|norms| norms.get(index)) {
            Some(norm) => norm.forward(&x.to_dtype(DType::F32)?)?.to_dtype(x.dtype()),
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
        let (t, d) = (q.dim(0)? / batch_size.max(1), self.head_size);
        if q.dim(0)? != batch_size * t {
            bail!("{} tokens do not fit {batch_size} rows of equal length", q.dim(0)?);
        }
        let has_window = self.window.is_some_and(|window| window < t);
        if let Some(spans) = mask.spans(batch_size, t).filter(|_| !has_window)
            && let Some(attended) = attend_spans([q, k, v], &spans.into(), self.scale)?
        {
            return Ok(attended);
        }
        let split_heads = |x: &Tensor| {
            x.reshape((batch_size, t, self.kv_heads, d))?.transpose(1, 2)?.contiguous()
        };
        let (q, k, v) = (self.group(q, batch_size)?, split_heads(k)?, split_heads(v)?);
        let scores = q.matmul(&k.transpose(2, 3)?)?;
        let weights = masked_softmax(&scores, t, self.scale, mask, self.window)?;
        self.ungroup(&weights.matmul(&v)?, t)
    }

    /// Computes the attention of each sequence over its own cache on the CPU. The results do not
    /// depend on the other sequences of the batch.
    fn forward_cached(&self, q: &Tensor, batch: &CachedBatch) -> Result<Tensor> {
        let jobs = batch.rows().zip(batch.caches.iter()).zip(batch.bidirectional);
        let sequences: Vec<AttendedSequence> = jobs
            .filter_map(|((rows, cache), bidirectional)| {
                let blocks = cache.layers.get(batch.layer)?.blocks();
                Some(AttendedSequence { new_tokens: rows.len(), blocks, bidirectional })
            })
            .collect();
        attend(q, &sequences, AttentionSettings { scale: self.scale, window: self.window })
    }
}
