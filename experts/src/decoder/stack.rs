//! The two halves of a decoder: the trunk (embedding and lower layers), the head (the layers above,
//! final norm and output layer).

use std::ops::Range;
use std::sync::Arc;

use acem3_kernels::Matrix;
use candle::{Result, Tensor, bail};
use candle_nn::VarBuilder;

use super::attention::Sequences;
use super::batch_layout::Sight;
use super::cache::KvCache;
use super::config::DecoderConfig;
use super::layer::Layer;
use crate::ops::{Rotary, rms_norm};

/// The new tokens of one cached sequence.
pub struct Row<'a> {
    /// How many of the step's rows belong to it.
    pub tokens: usize,
    /// What it saw before; the new tokens are appended.
    pub cache: &'a mut KvCache,
}

#[derive(Clone, Debug)]
struct Layers(Vec<Layer>);

impl Layers {
    fn load(vb: &VarBuilder, config: &DecoderConfig, range: Range<usize>) -> Result<Self> {
        // One table for all layers: for a context of 131 072 tokens it takes 67 MB.
        let context = config.max_position_embeddings;
        let stretch = |pair, period| match &config.rope_scaling {
            Some(scaling) => scaling.stretch(pair, period),
            None => period,
        };
        let rotary = Rotary::stretched(config.head_size(), context, config.rope_theta, stretch);
        range
            .map(|i| {
                let vb = vb.pp(format!("layers.{i}"));
                Layer::load(&vb, config, &rotary, config.window(i))
            })
            .collect::<Result<_>>()
            .map(Self)
    }

    fn whole(&self, x: &Tensor, sight: &Sight) -> Result<Tensor> {
        self.0
            .iter()
            .try_fold(x.clone(), |x, layer| layer.whole(&x, sight))
    }

    fn cached(&self, x: &Tensor, rows: &mut [Row]) -> Result<Tensor> {
        let counts: Vec<usize> = rows.iter().map(|row| row.tokens).collect();
        if counts.iter().sum::<usize>() != x.dim(0)? {
            bail!("{} rows for sequences of {counts:?} tokens", x.dim(0)?);
        }
        let positions: Arc<[u32]> = rows
            .iter()
            .flat_map(|row| (row.cache.len()..row.cache.len() + row.tokens).map(|p| p as u32))
            .collect();
        let mut x = x.clone();
        for (i, layer) in self.0.iter().enumerate() {
            let mut caches: Vec<&mut KvCache> =
                rows.iter_mut().map(|row| &mut *row.cache).collect();
            let mut sequences = Sequences::Cached {
                counts: &counts,
                positions: positions.clone(),
                caches: &mut caches,
                layer: i,
            };
            x = layer.forward(&x, &mut sequences)?;
        }
        for row in rows {
            row.cache.grew(row.tokens);
        }
        Ok(x)
    }
}

/// The part of the decoder that the members of a panel share.
#[derive(Clone, Debug)]
pub struct Trunk {
    embedding: Matrix,
    layers: Layers,
}

impl Trunk {
    /// The embedding and the first `depth` layers of the decoder under `vb`.
    pub fn load(vb: &VarBuilder, config: &DecoderConfig, depth: usize) -> Result<Self> {
        let vb = vb.pp("model");
        Ok(Self {
            embedding: Matrix::load(
                &vb,
                (config.vocab_size, config.hidden_size),
                "embed_tokens.weight",
            )?,
            layers: Layers::load(&vb, config, 0..depth)?,
        })
    }

    /// Number of layers.
    pub fn depth(&self) -> usize {
        self.layers.0.len()
    }

    /// The layers, the lowest first.
    pub fn layers(&self) -> &[Layer] {
        &self.layers.0
    }

    /// The embeddings of tokens.
    ///
    /// # Shapes
    /// `n` ids to `(n, c)`.
    pub fn embed(&self, tokens: &[u32]) -> Result<Tensor> {
        self.embedding.rows(tokens)
    }

    /// The hidden states at the trunk's top, without caches.
    ///
    /// # Shapes
    /// `(b·t, c)` to `(b·t, c)`.
    pub fn forward(&self, x: &Tensor, sight: &Sight) -> Result<Tensor> {
        self.layers.whole(x, sight)
    }

    /// The hidden states of new tokens, which the caches then remember.
    ///
    /// # Shapes
    /// `(n, c)` to `(n, c)`, the tokens of the rows one after the other.
    pub fn forward_cached(&self, x: &Tensor, rows: &mut [Row]) -> Result<Tensor> {
        self.layers.cached(x, rows)
    }
}

/// One member's own part of the decoder.
#[derive(Clone, Debug)]
pub struct Head {
    layers: Layers,
    norm: Tensor,
    output: Matrix,
    eps: f64,
}

impl Head {
    /// The layers from `depth` on, the final norm and the output layer of the decoder under `vb`.
    pub fn load(vb: &VarBuilder, config: &DecoderConfig, depth: usize) -> Result<Self> {
        let model = vb.pp("model");
        let shape = (config.vocab_size, config.hidden_size);
        Ok(Self {
            layers: Layers::load(&model, config, depth..config.num_hidden_layers)?,
            norm: model.get(config.hidden_size, "norm.weight")?,
            output: if config.tie_word_embeddings {
                Matrix::load(&model, shape, "embed_tokens.weight")?
            } else {
                Matrix::load(vb, shape, "lm_head.weight")?
            },
            eps: config.rms_norm_eps,
        })
    }

    /// Number of layers.
    pub fn depth(&self) -> usize {
        self.layers.0.len()
    }

    /// The layers, the lowest first.
    pub fn layers(&self) -> &[Layer] {
        &self.layers.0
    }

    /// The hidden states at the top, without caches.
    ///
    /// # Shapes
    /// `(b·t, c)` to `(b·t, c)`.
    pub fn forward(&self, x: &Tensor, sight: &Sight) -> Result<Tensor> {
        self.layers.whole(x, sight)
    }

    /// The hidden states of new tokens, which the caches then remember.
    ///
    /// # Shapes
    /// `(n, c)` to `(n, c)`.
    pub fn forward_cached(&self, x: &Tensor, rows: &mut [Row]) -> Result<Tensor> {
        self.layers.cached(x, rows)
    }

    /// The logits of the next token.
    ///
    /// # Shapes
    /// `(n, c)` to `(n, v)`.
    pub fn logits(&self, hidden: &Tensor) -> Result<Tensor> {
        let normed = rms_norm(hidden, &self.norm, self.eps)?;
        self.output.linear(&normed, None)
    }
}
