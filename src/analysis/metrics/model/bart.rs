//! BART (Lewis et al. 2020): log-likelihood of a text given another (reference: `modeling_bart.py` of
//! transformers).

use acem3_kernels::{LayerNorm, linear, log_probabilities};
use anyhow::{Context, Result};
use candle::Tensor;
use candle_nn::{Embedding, Module, VarBuilder};

use super::attention::causal;
use super::config::{self, BartConfig};
use super::layer::{Layer, Sizes};
use super::source::ModelSource;
use super::{Tokens, ids};
use crate::support::device::Placement;

/// Number of unused rows at the start of the position tables.
const POSITION_OFFSET: usize = 2;

/// An encoder-decoder model.
pub(crate) struct Bart {
    /// Tokenizer.
    pub(crate) tokens: Tokens,
    words: Tensor,
    /// Added to the logits.
    bias: Tensor,
    encoder: Stack,
    decoder: Stack,
    scale: f64,
    start: u32,
}

/// The encoder or the decoder.
struct Stack {
    positions: Tensor,
    norm: LayerNorm,
    layers: Vec<Layer>,
}

impl Bart {
    /// Loads the model. Also returns the hash of the weights.
    pub(crate) fn load(source: &ModelSource, place: &Placement) -> Result<(Self, String)> {
        let config = source.config(config::bart)?;
        let tokens = Tokens::read(source, config.positions, false)?;
        tokens.check(config.vocabulary)?;
        let weights = source.weights("BART", place, rename)?;
        let vb = weights.builder(&place.device);
        let bart = Self::build(&vb, &config, tokens);
        let bart = bart.with_context(|| source.folder.display().to_string())?;
        weights.all_used()?;
        Ok((bart, weights.digest().short()))
    }

    fn build(vb: &VarBuilder, config: &BartConfig, tokens: Tokens) -> candle::Result<Self> {
        let (v, c) = (config.vocabulary, config.encoder.0.hidden);
        let stack = |name: &str, (sizes, layers): (Sizes, usize)| {
            let vb = vb.pp(name);
            let positions = config.positions + POSITION_OFFSET;
            let layers = (0..layers)
                .map(|i| Layer::load(&vb.pp(format!("layers.{i}")), sizes, name == "decoder"));
            Ok::<_, candle::Error>(Stack {
                positions: vb.get((positions, c), "embed_positions.weight")?,
                norm: LayerNorm::load(&vb.pp("layernorm_embedding"), c, sizes.eps)?,
                layers: layers.collect::<candle::Result<_>>()?,
            })
        };
        // Checkpoints without the language-model head have no bias.
        let bias = if vb.contains_tensor("final_logits_bias") {
            vb.get((1, v), "final_logits_bias")?.flatten_all()?
        } else {
            Tensor::zeros(v, candle::DType::F32, vb.device())?
        };
        Ok(Self {
            tokens,
            words: vb.get((v, c), "shared.weight")?,
            bias,
            encoder: stack("encoder", config.encoder)?,
            decoder: stack("decoder", config.decoder)?,
            scale: if config.scaled {
                (c as f64).sqrt()
            } else {
                1.0
            },
            start: config.start,
        })
    }

    /// Size of the vocabulary.
    pub(crate) fn vocabulary(&self) -> usize {
        self.bias.elem_count()
    }

    /// Returns the mean log-likelihood of each target's tokens (with special tokens) given its source. All
    /// sources must have equal lengths, and so must all targets.
    pub(crate) fn likelihoods(
        &self,
        sources: &[&[u32]],
        targets: &[&[u32]],
    ) -> candle::Result<Vec<f64>> {
        let mut memory = self.encoder.embed(&self.words, sources, self.scale)?;
        for layer in &self.encoder.layers {
            memory = layer.encode(&memory)?;
        }
        // Each token is predicted from those before it, the first from the start token.
        let shifted: Vec<Vec<u32>> = targets
            .iter()
            .map(|target| {
                let before = target.split_last().map_or(&[][..], |(_, before)| before);
                [&[self.start][..], before].concat()
            })
            .collect();
        let shifted: Vec<&[u32]> = shifted.iter().map(Vec::as_slice).collect();
        let mut x = self.decoder.embed(&self.words, &shifted, self.scale)?;
        let (b, t, c) = x.dims3()?;
        let mask = causal(t, x.device())?;
        for layer in &self.decoder.layers {
            x = layer.decode(&x, &mask, &memory)?;
        }
        let logits = linear(&x.reshape((b * t, c))?, &self.words, Some(&self.bias))?;
        let found = log_probabilities(&logits, &targets.concat())?;
        let mean = |tokens: &[f32]| tokens.iter().map(|x| f64::from(*x)).sum::<f64>() / t as f64;
        Ok(found.chunks(t.max(1)).map(mean).collect())
    }
}

impl Stack {
    /// Embeds tokens.
    fn embed(&self, words: &Tensor, tokens: &[&[u32]], scale: f64) -> candle::Result<Tensor> {
        let ids = ids(tokens, words.device())?;
        let x = (Embedding::new(words.clone(), words.dim(1)?).forward(&ids)? * scale)?;
        let positions = self.positions.narrow(0, POSITION_OFFSET, x.dim(1)?)?;
        self.norm.forward(&x.broadcast_add(&positions)?)
    }
}

/// Returns the name by which layers load a tensor; `None` for aliases of the shared embedding.
fn rename(name: &str) -> Option<String> {
    let own = name.strip_prefix("model.").unwrap_or(name);
    let again = [
        "encoder.embed_tokens.weight",
        "decoder.embed_tokens.weight",
        "lm_head.weight",
    ];
    (!again.contains(&own)).then(|| own.to_owned())
}
