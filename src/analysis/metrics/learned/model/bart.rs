//! BART (Lewis et al. 2020): log-likelihood of a text given another (reference: `modeling_bart.py`
//! of transformers).

use acem3_kernels::{LayerNorm, linear, log_probabilities};
use anyhow::{Context, Result};
use candle::Tensor;
use candle_nn::{Embedding, Module, VarBuilder};

use super::attention::causal_mask;
use super::config::{self, BartConfig, BartStackConfig};
use super::layer::BartLayer;
use super::source::ModelSource;
use super::tokens::{MetricTokenizer, id_tensor};
use crate::support::device::Placement;

/// Number of unused rows at the start of the position tables.
const POSITION_OFFSET: usize = 2;

/// An encoder-decoder model.
pub(crate) struct Bart {
    /// Tokenizer.
    pub(crate) tokenizer: MetricTokenizer,
    token_embedding: Tensor,
    /// Bias of the logits.
    logit_bias: Tensor,
    encoder: BartStack,
    decoder: BartStack,
    embedding_scale: f64,
    start_token: u32,
}

/// The encoder or the decoder.
struct BartStack {
    positions: Tensor,
    norm: LayerNorm,
    layers: Vec<BartLayer>,
}

impl Bart {
    /// Loads the model. Also returns the hash of the weights.
    pub(crate) fn load(source: &ModelSource, placement: &Placement) -> Result<(Self, String)> {
        let config = source.read_config(config::parse_bart)?;
        let tokenizer = MetricTokenizer::read(source, config.max_tokens, false)?;
        tokenizer.check_vocabulary(config.vocabulary)?;
        let weights = source.read_weights("BART", placement, rename_tensor)?;
        let vb = weights.builder(&placement.device);
        let bart = Self::build(&vb, &config, tokenizer);
        let bart = bart.with_context(|| source.folder.display().to_string())?;
        weights.check_all_used()?;
        Ok((bart, weights.digest().short_hex()))
    }

    fn build(
        vb: &VarBuilder,
        config: &BartConfig,
        tokenizer: MetricTokenizer,
    ) -> candle::Result<Self> {
        let (v, c) = (config.vocabulary, config.encoder.sizes.hidden);
        let stack = |name: &str, BartStackConfig { sizes, layers }: BartStackConfig| {
            let vb = vb.pp(name);
            let positions = config.max_tokens + POSITION_OFFSET;
            let layers = (0..layers)
                .map(|i| BartLayer::load(&vb.pp(format!("layers.{i}")), sizes, name == "decoder"));
            Ok::<_, candle::Error>(BartStack {
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
            tokenizer,
            token_embedding: vb.get((v, c), "shared.weight")?,
            logit_bias: bias,
            encoder: stack("encoder", config.encoder)?,
            decoder: stack("decoder", config.decoder)?,
            embedding_scale: if config.scales_embeddings { (c as f64).sqrt() } else { 1.0 },
            start_token: config.start_token,
        })
    }

    /// Returns the size of the vocabulary.
    pub(crate) fn vocabulary_size(&self) -> usize {
        self.logit_bias.elem_count()
    }

    /// Returns the mean log-likelihood of each target's tokens (with special tokens) given its
    /// source. All sources must have equal lengths, and so must all targets.
    pub(crate) fn likelihoods(
        &self,
        sources: &[&[u32]],
        targets: &[&[u32]],
    ) -> candle::Result<Vec<f64>> {
        let mut memory =
            self.encoder.embed(&self.token_embedding, sources, self.embedding_scale)?;
        for layer in &self.encoder.layers {
            memory = layer.encode(&memory)?;
        }
        // The decoder predicts each token from the tokens before it, the first from the start
        // token.
        let shifted: Vec<Vec<u32>> = targets
            .iter()
            .map(|target| {
                let before = target.split_last().map_or(&[][..], |(_, before)| before);
                [&[self.start_token][..], before].concat()
            })
            .collect();
        let shifted: Vec<&[u32]> = shifted.iter().map(Vec::as_slice).collect();
        let mut x = self.decoder.embed(&self.token_embedding, &shifted, self.embedding_scale)?;
        let (b, t, c) = x.dims3()?;
        let mask = causal_mask(t, x.device())?;
        for layer in &self.decoder.layers {
            x = layer.decode(&x, &mask, &memory)?;
        }
        let logits =
            linear(&x.reshape((b * t, c))?, &self.token_embedding, Some(&self.logit_bias))?;
        let token_likelihoods = log_probabilities(&logits, &targets.concat())?;
        let mean = |tokens: &[f32]| tokens.iter().map(|x| f64::from(*x)).sum::<f64>() / t as f64;
        Ok(token_likelihoods.chunks(t.max(1)).map(mean).collect())
    }
}

impl BartStack {
    /// Embeds tokens: the rows of `table` times `scale`, plus position embeddings, then layer norm.
    fn embed(&self, table: &Tensor, tokens: &[&[u32]], scale: f64) -> candle::Result<Tensor> {
        let ids = id_tensor(tokens, table.device())?;
        let x = (Embedding::new(table.clone(), table.dim(1)?).forward(&ids)? * scale)?;
        let positions = self.positions.narrow(0, POSITION_OFFSET, x.dim(1)?)?;
        self.norm.forward(&x.broadcast_add(&positions)?)
    }
}

/// Returns the name by which layers load a tensor; `None` for aliases of the shared embedding.
fn rename_tensor(name: &str) -> Option<String> {
    let short = name.strip_prefix("model.").unwrap_or(name);
    let aliases = ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"];
    (!aliases.contains(&short)).then(|| short.to_owned())
}
