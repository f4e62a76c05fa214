//! BART (Lewis et al. 2020): the likelihood of a text given another (reference: transformers'
//! `modeling_bart.py`).

use acem3_experts::ops::{linear, log_probabilities};
use acem3_vision::ops::LayerNorm;
use anyhow::{Context, Result};
use candle::Tensor;
use candle_nn::VarBuilder;

use super::attention::causal;
use super::config::{self, BartConfig};
use super::layer::{BART_DECODER, BART_ENCODER, Layer, Names, Sizes};
use super::source::ModelSource;
use super::{Tokens, rows};
use crate::support::device::Placement;

/// The rows of positions that are not used.
const FIRST: usize = 2;

/// An encoder of one text and a decoder of another.
pub(crate) struct Bart {
    /// Its tokenizer.
    pub(crate) tokens: Tokens,
    words: Tensor,
    /// What is added to the score of each word.
    bias: Tensor,
    encoder: Side,
    decoder: Side,
    scale: f64,
    start: u32,
}

/// One of the two stacks.
struct Side {
    positions: Tensor,
    norm: LayerNorm,
    layers: Vec<Layer>,
}

impl Bart {
    /// Loads both sides. Also gives the hash of the weights.
    pub(crate) fn load(source: &ModelSource, place: &Placement) -> Result<(Self, String)> {
        let config = source.config(config::bart)?;
        let tokens = Tokens::read(source, config.shared.positions, false)?;
        tokens.check(config.shared.vocabulary)?;
        let weights = source.weights("BART", place, rename)?;
        let vb = weights.builder(&place.device);
        let bart = Self::build(&vb, &config, tokens);
        let bart = bart.with_context(|| source.folder.display().to_string())?;
        weights.all_used()?;
        Ok((bart, weights.digest().short()))
    }

    fn build(vb: &VarBuilder, config: &BartConfig, tokens: Tokens) -> candle::Result<Self> {
        let (v, c) = (config.shared.vocabulary, config.encoder.0.hidden);
        let side = |name: &str, names: &Names, (sizes, layers): (Sizes, usize)| {
            let vb = vb.pp(name);
            let positions = config.shared.positions + FIRST;
            let layers =
                (0..layers).map(|i| Layer::load(&vb.pp(format!("layers.{i}")), names, sizes));
            Ok::<_, candle::Error>(Side {
                positions: vb.get((positions, c), "embed_positions.weight")?,
                norm: LayerNorm::load(&vb.pp("layernorm_embedding"), c, sizes.eps)?,
                layers: layers.collect::<candle::Result<_>>()?,
            })
        };
        // Checkpoints of the model without its head have no bias.
        let bias = if vb.contains_tensor("final_logits_bias") {
            vb.get((1, v), "final_logits_bias")?.flatten_all()?
        } else {
            Tensor::zeros(v, candle::DType::F32, vb.device())?
        };
        Ok(Self {
            tokens,
            words: vb.get((v, c), "shared.weight")?,
            bias,
            encoder: side("encoder", &BART_ENCODER, config.encoder)?,
            decoder: side("decoder", &BART_DECODER, config.decoder)?,
            scale: if config.scaled {
                (c as f64).sqrt()
            } else {
                1.0
            },
            start: config.start,
        })
    }

    /// How many words there are.
    pub(crate) fn vocabulary(&self) -> usize {
        self.bias.elem_count()
    }

    /// The mean log-likelihood of each target's tokens, the marks of beginning and end among them, given
    /// its source. All sources are of equal length, and all targets.
    pub(crate) fn likelihoods(
        &self,
        sources: &[&[u32]],
        targets: &[&[u32]],
    ) -> candle::Result<Vec<f64>> {
        let mut memory = self.encoder.begin(&self.words, sources, self.scale)?;
        for layer in &self.encoder.layers {
            memory = layer.encode(&memory)?;
        }
        // Each token is foretold from those before it, the first from the mark of the start.
        let shifted: Vec<Vec<u32>> = targets
            .iter()
            .map(|target| {
                let before = target.split_last().map_or(&[][..], |(_, before)| before);
                [&[self.start][..], before].concat()
            })
            .collect();
        let shifted: Vec<&[u32]> = shifted.iter().map(Vec::as_slice).collect();
        let mut x = self.decoder.begin(&self.words, &shifted, self.scale)?;
        let (b, t, c) = x.dims3()?;
        let hidden = causal(t, x.device())?;
        for layer in &self.decoder.layers {
            x = layer.decode(&x, &hidden, &memory)?;
        }
        let logits = linear(&x.reshape((b * t, c))?, &self.words, Some(&self.bias))?;
        let found = log_probabilities(&logits, &targets.concat())?;
        let mean = |tokens: &[f32]| tokens.iter().map(|x| f64::from(*x)).sum::<f64>() / t as f64;
        Ok(found.chunks(t.max(1)).map(mean).collect())
    }
}

impl Side {
    /// The embedded tokens.
    fn begin(&self, words: &Tensor, tokens: &[&[u32]], scale: f64) -> candle::Result<Tensor> {
        let x = (rows(words, tokens)? * scale)?;
        let positions = self.positions.narrow(0, FIRST, x.dim(1)?)?;
        self.norm.forward(&x.broadcast_add(&positions)?)
    }
}

/// Our name for a tensor; none for the further names of the one table of words.
fn rename(name: &str) -> Option<String> {
    let own = name.strip_prefix("model.").unwrap_or(name);
    let again = [
        "encoder.embed_tokens.weight",
        "decoder.embed_tokens.weight",
        "lm_head.weight",
    ];
    (!again.contains(&own)).then(|| own.to_owned())
}
