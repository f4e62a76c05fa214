//! BERT (Devlin et al. 2019) and `RoBERTa` (Liu et al. 2019), up to a layer (reference: transformers'
//! `modeling_bert.py`, `modeling_roberta.py`).

use acem3_vision::ops::LayerNorm;
use anyhow::{Context, Result, bail, ensure};
use candle::Tensor;

use super::config::{self, BertConfig};
use super::layer::{BERT, Layer};
use super::source::ModelSource;
use super::{Tokens, rows};
use crate::support::device::Placement;

/// An encoder of texts.
pub(crate) struct Bert {
    /// Its tokenizer.
    pub(crate) tokens: Tokens,
    words: Tensor,
    positions: Tensor,
    segment: Tensor,
    norm: LayerNorm,
    layers: Vec<Layer>,
    first: usize,
}

/// What stands before names where the encoder is a part of a larger model.
const PREFIXES: [&str; 2] = ["bert.", "roberta."];
/// Heads that a checkpoint may have on top.
const HEADS: [&str; 5] = ["pooler.", "cls.", "lm_head.", "classifier.", "qa_outputs."];

impl Bert {
    /// Loads the encoder up to `layer`; `None` takes the one that bert-score uses for this checkpoint. Also
    /// gives the layer and the hash of the weights.
    pub(crate) fn load(
        source: &ModelSource,
        layer: Option<usize>,
        place: &Placement,
    ) -> Result<(Self, usize, String)> {
        let (config, spaced) = source.config(config::bert)?;
        let Some(layer) = layer.or_else(|| known_layer(&source.name)) else {
            bail!(
                "{}: nobody has chosen a layer for this checkpoint\n\
                 hint: name one with --bert-layer; bert-score takes 9 or 10 of 12 layers, 17 or 18 of 24",
                source.name
            );
        };
        ensure!(
            layer <= config.layers,
            "--bert-layer {layer}: {} has {} layers\nhint: 0 means the embeddings",
            source.name,
            config.layers
        );
        let tokens = Tokens::read(source, config.shared.positions, spaced)?;
        tokens.check(config.shared.vocabulary)?;
        let weights = source.weights("BERT", place, rename)?;
        let load = || Self::build(&weights.builder(&place.device), &config, layer, tokens);
        let bert = load().with_context(|| source.folder.display().to_string())?;
        weights.all_used()?;
        Ok((bert, layer, weights.digest().short()))
    }

    fn build(
        vb: &candle_nn::VarBuilder,
        config: &BertConfig,
        layer: usize,
        tokens: Tokens,
    ) -> candle::Result<Self> {
        let c = config.sizes.hidden;
        let table =
            |name: &str, n: usize| vb.pp("embeddings").get((n, c), &format!("{name}.weight"));
        // All layers, so that a checkpoint that lacks one is found out; those above are dropped.
        let layers = (0..config.layers)
            .map(|i| Layer::load(&vb.pp(format!("encoder.layer.{i}")), &BERT, config.sizes));
        let mut layers = layers.collect::<candle::Result<Vec<_>>>()?;
        layers.truncate(layer);
        let positions = config.shared.positions + config.first;
        Ok(Self {
            tokens,
            words: table("word_embeddings", config.shared.vocabulary)?,
            positions: table("position_embeddings", positions)?,
            segment: table("token_type_embeddings", config.segments)?.get(0)?,
            norm: LayerNorm::load(&vb.pp("embeddings.LayerNorm"), c, config.sizes.eps)?,
            layers,
            first: config.first,
        })
    }

    /// The states of texts of equal length.
    ///
    /// # Shapes
    /// b sequences of t tokens → (b, t, c).
    pub(crate) fn states(&self, sequences: &[&[u32]]) -> candle::Result<Tensor> {
        let words = rows(&self.words, sequences)?;
        let positions = self.positions.narrow(0, self.first, words.dim(1)?)?;
        let x = words
            .broadcast_add(&positions)?
            .broadcast_add(&self.segment)?;
        let first = self.norm.forward(&x)?;
        self.layers
            .iter()
            .try_fold(first, |x, layer| layer.encode(&x))
    }
}

/// Our name for a tensor; none for those of heads.
fn rename(name: &str) -> Option<String> {
    let own = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    let own = own.unwrap_or(name);
    if HEADS.iter().any(|head| own.starts_with(head)) {
        return None;
    }
    // What TensorFlow's first checkpoints called them.
    let own = own.replace("LayerNorm.gamma", "LayerNorm.weight");
    Some(own.replace("LayerNorm.beta", "LayerNorm.bias"))
}

/// The layer whose states agree best with people's judgement of translations (`model2layers` in
/// bert-score's `utils.py`), by the checkpoint's name.
fn known_layer(name: &str) -> Option<usize> {
    const KNOWN: [(&str, usize); 15] = [
        ("bert-base-uncased", 9),
        ("bert-large-uncased", 18),
        ("bert-base-multilingual-cased", 9),
        ("bert-base-chinese", 8),
        ("roberta-base", 10),
        ("roberta-large", 17),
        ("roberta-large-mnli", 19),
        ("xlm-roberta-base", 9),
        ("xlm-roberta-large", 17),
        ("scibert_scivocab_uncased", 8),
        ("scibert_scivocab_cased", 9),
        ("distilroberta-base", 5),
        ("spanbert-base-cased", 8),
        ("spanbert-large-cased", 17),
        ("bert-base-turkish-cased", 10),
    ];
    let name = name.to_lowercase();
    let last = name.rsplit('/').next().unwrap_or_default();
    let known = KNOWN.iter().find(|(known, _)| *known == last);
    known.map(|(_, layer)| *layer)
}
