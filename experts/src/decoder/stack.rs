//! Trunk (embedding and lower layers) and head (upper layers, final norm and output layer) of a
//! decoder.

use std::ops::Range;
use std::sync::Arc;

use acem3_kernels::{AttentionPass, Matrix, PassSequence};
use candle::{DType, Result, Tensor, bail};
use candle_nn::VarBuilder;

use super::attention::{AttentionBatch, CachedBatch};
use super::batch_layout::BatchLayout;
use super::cache::KvCache;
use super::config::DecoderConfig;
use super::layer::DecoderLayer;
use super::norm::DecoderNorm;
use crate::ops::RotaryTables;

/// New tokens of one cached sequence.
pub struct CachedSequence<'a> {
    /// Number of input rows that belong to this sequence.
    pub new_tokens: usize,
    /// Cache of the earlier tokens; the forward pass appends the new ones.
    pub cache: &'a mut KvCache,
    /// Ranges of the new tokens that attend to all tokens of their range, also to later ones, counted
    /// from the first new token. See [`DecoderConfig::has_bidirectional_images`].
    pub bidirectional: Vec<Range<usize>>,
}

impl<'a> CachedSequence<'a> {
    /// Creates a sequence of tokens that attend to earlier tokens only.
    pub fn causal(new_tokens: usize, cache: &'a mut KvCache) -> Self {
        Self { new_tokens, cache, bidirectional: Vec::new() }
    }
}

/// Consecutive layers of a decoder.
#[derive(Clone, Debug)]
struct LayerStack(Vec<DecoderLayer>);

impl LayerStack {
    fn load(vb: &VarBuilder, config: &DecoderConfig, range: Range<usize>) -> Result<Self> {
        // The layers of the stack share the tables, which take 67 MB for a context of 131,072
        // tokens and a head size of 128.
        let (d, context) = (config.head_size(), config.max_position_embeddings);
        let scaled_period = |pair, period| match &config.rope_scaling {
            Some(scaling) => scaling.scaled_period(pair, period),
            None => period,
        };
        let rotary =
            RotaryTables::with_scaled_periods(d, context, config.rope_theta, scaled_period);
        let local_theta = config.gemma.as_ref().map(|gemma| gemma.rope_local_base_freq);
        let local_rotary = local_theta.map(|theta| RotaryTables::new(d, context, theta));
        range
            .map(|i| {
                let vb = vb.pp(format!("layers.{i}"));
                let window = config.window(i);
                let is_local = config.gemma.as_ref().is_some_and(|gemma| gemma.is_sliding(i));
                let local_rotary = local_rotary.as_ref().filter(|_| is_local);
                DecoderLayer::load(&vb, config, local_rotary.unwrap_or(&rotary), window)
            })
            .collect::<Result<_>>()
            .map(Self)
    }

    fn forward_full(&self, x: &Tensor, layout: &BatchLayout) -> Result<Tensor> {
        self.0.iter().try_fold(x.clone(), |x, layer| layer.forward_full(&x, layout))
    }

    fn forward_cached(&self, x: &Tensor, sequences: &mut [CachedSequence]) -> Result<Tensor> {
        self.run_cached(x, sequences, self.0.len())
    }

    /// Appends the keys and values of all layers to the caches. The last layer computes nothing
    /// else, because no later layer needs its output.
    fn fill_caches(&self, x: &Tensor, sequences: &mut [CachedSequence]) -> Result<()> {
        self.run_cached(x, sequences, self.0.len().saturating_sub(1)).map(drop)
    }

    /// Appends the keys and values of all layers to the caches. Returns the output of the first
    /// `depth` layers.
    fn run_cached(
        &self,
        x: &Tensor,
        sequences: &mut [CachedSequence],
        depth: usize,
    ) -> Result<Tensor> {
        let token_counts: Vec<usize> = sequences.iter().map(|s| s.new_tokens).collect();
        if token_counts.iter().sum::<usize>() != x.dim(0)? {
            bail!("{} rows for sequences of {token_counts:?} tokens", x.dim(0)?);
        }
        let positions: Arc<[u32]> = sequences
            .iter()
            .flat_map(|s| (s.cache.len()..s.cache.len() + s.new_tokens).map(|p| p as u32))
            .collect();
        let bidirectional: Vec<Vec<Range<usize>>> = sequences
            .iter()
            .map(|s| {
                let first = s.cache.len();
                let shift = |range: &Range<usize>| range.start + first..range.end + first;
                s.bidirectional.iter().map(shift).collect()
            })
            .collect();
        let pass = self.start_pass(x, sequences, &bidirectional)?;
        let mut x = x.clone();
        for (i, layer) in self.0.iter().enumerate() {
            let mut caches: Vec<&mut KvCache> =
                sequences.iter_mut().map(|s| &mut *s.cache).collect();
            let mut batch = CachedBatch {
                token_counts: &token_counts,
                positions: positions.clone(),
                caches: &mut caches,
                bidirectional: &bidirectional,
                pass: pass.as_ref(),
                layer: i,
            };
            if i < depth {
                x = layer.forward(&x, &mut AttentionBatch::Cached(batch))?;
            } else {
                layer.fill_caches(&x, &mut batch)?;
            }
        }
        for sequence in sequences {
            sequence.cache.advance(sequence.new_tokens);
        }
        Ok(x)
    }

    /// Describes the new tokens for the kernels of a GPU; `None` on the CPU.
    fn start_pass(
        &self,
        x: &Tensor,
        sequences: &mut [CachedSequence],
        bidirectional: &[Vec<Range<usize>>],
    ) -> Result<Option<AttentionPass>> {
        let Some(layer) = self.0.first().filter(|_| x.device().is_cuda()) else {
            return Ok(None);
        };
        let mut new: Vec<PassSequence> = sequences
            .iter_mut()
            .zip(bidirectional)
            .map(|(sequence, bidirectional)| PassSequence {
                new_tokens: sequence.new_tokens,
                first_position: sequence.cache.len(),
                cache: &mut sequence.cache.on_device,
                bidirectional,
            })
            .collect();
        AttentionPass::new(&mut new, layer.heads(), layer.cache_shape(self.0.len())).map(Some)
    }
}

/// Lower part of the decoder, shared by the members of a panel.
#[derive(Clone, Debug)]
pub struct Trunk {
    embedding: Matrix,
    /// Factor of the embeddings of text tokens.
    embedding_scale: Option<f64>,
    has_bidirectional_images: bool,
    layers: LayerStack,
}

impl Trunk {
    /// Loads the embedding and the first `depth` layers of a decoder.
    pub fn load(vb: &VarBuilder, config: &DecoderConfig, depth: usize) -> Result<Self> {
        let vb = vb.pp("model");
        Ok(Self {
            embedding: Matrix::load(
                &vb,
                (config.vocab_size, config.hidden_size),
                "embed_tokens.weight",
            )?,
            embedding_scale: config.gemma.as_ref().map(|_| (config.hidden_size as f64).sqrt()),
            has_bidirectional_images: config.has_bidirectional_images(),
            layers: LayerStack::load(&vb, config, 0..depth)?,
        })
    }

    /// Returns the number of layers.
    pub fn depth(&self) -> usize {
        self.layers.0.len()
    }

    /// Returns the layers, lowest first.
    pub fn layers(&self) -> &[DecoderLayer] {
        &self.layers.0
    }

    /// Returns true if the weights are in the memory of the CPU.
    pub fn is_on_cpu(&self) -> bool {
        self.embedding.placement().1.is_cpu()
    }

    /// Returns the type of keys and values in caches: f32 on the CPU, that of the weights on a GPU.
    pub fn cache_dtype(&self) -> DType {
        let (dtype, device) = self.embedding.placement();
        if device.is_cpu() { DType::F32 } else { dtype }
    }

    /// Returns the embeddings of tokens.
    ///
    /// # Shapes
    /// `n` token ids to `(n, c)`.
    pub fn embed(&self, tokens: &[u32]) -> Result<Tensor> {
        let embeddings = self.embedding.select_rows(tokens)?;
        match self.embedding_scale {
            Some(scale) => embeddings * scale,
            None => Ok(embeddings),
        }
    }

    /// Returns true if the tokens of an image attend to all tokens of that image.
    pub fn has_bidirectional_images(&self) -> bool {
        self.has_bidirectional_images
    }

    /// Runs all layers without caches.
    ///
    /// # Shapes
    /// `(b·t, c)` to `(b·t, c)`.
    pub fn forward(&self, x: &Tensor, layout: &BatchLayout) -> Result<Tensor> {
        self.layers.forward_full(x, layout)
    }

    /// Runs all layers on new tokens and appends their keys and values to the caches.
    ///
    /// # Shapes
    /// `(n, c)` to `(n, c)`, the sequences one after the other.
    pub fn forward_cached(&self, x: &Tensor, sequences: &mut [CachedSequence]) -> Result<Tensor> {
        self.layers.forward_cached(x, sequences)
    }
}

/// Upper part of the decoder, one for each member.
#[derive(Clone, Debug)]
pub struct Head {
    layers: LayerStack,
    norm: DecoderNorm,
    output: Matrix,
}

impl Head {
    /// Loads the layers above the first `depth`, the final norm and the output layer of a decoder.
    pub fn load(vb: &VarBuilder, config: &DecoderConfig, depth: usize) -> Result<Self> {
        let model = vb.pp("model");
        let shape = (config.vocab_size, config.hidden_size);
        Ok(Self {
            layers: LayerStack::load(&model, config, depth..config.num_hidden_layers)?,
            norm: DecoderNorm::load(&model, config, config.hidden_size, "norm.weight")?,
            output: if config.tie_word_embeddings {
                Matrix::load(&model, shape, "embed_tokens.weight")?
            } else {
                Matrix::load(vb, shape, "lm_head.weight")?
            },
        })
    }

    /// Returns the number of layers.
    pub fn depth(&self) -> usize {
        self.layers.0.len()
    }

    /// Returns the layers, lowest first.
    pub fn layers(&self) -> &[DecoderLayer] {
        &self.layers.0
    }

    /// Runs all layers without caches.
    ///
    /// # Shapes
    /// `(b·t, c)` to `(b·t, c)`.
    pub fn forward(&self, x: &Tensor, layout: &BatchLayout) -> Result<Tensor> {
        self.layers.forward_full(x, layout)
    }

    /// Runs all layers on new tokens and appends their keys and values to the caches.
    ///
    /// # Shapes
    /// `(n, c)` to `(n, c)`.
    pub fn forward_cached(&self, x: &Tensor, sequences: &mut [CachedSequence]) -> Result<Tensor> {
        self.layers.forward_cached(x, sequences)
    }

    /// Appends the keys and values of new tokens to the caches, without computing an output.
    ///
    /// # Shapes
    /// `x`: `(n, c)`.
    pub fn fill_caches(&self, x: &Tensor, sequences: &mut [CachedSequence]) -> Result<()> {
        self.layers.fill_caches(x, sequences)
    }

    /// Returns the logits of the next token of each row.
    ///
    /// # Shapes
    /// `(n, c)` to `(n, v)`.
    pub fn logits(&self, hidden: &Tensor) -> Result<Tensor> {
        self.output.linear(&self.norm.forward(hidden)?, None)
    }
}
