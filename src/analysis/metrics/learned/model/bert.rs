//! BERT (Devlin et al. 2019) and `RoBERTa` (Liu et al. 2019): Candle's models, loaded strictly and
//! run up to a layer.

use anyhow::{Context, Result, bail, ensure};
use candle::{Device, Tensor};
use candle_nn::{Activation, VarBuilder};
use candle_transformers::models::{bert, xlm_roberta};

use super::config::{self, BertConfig};
use super::pooler::BertPooler;
use super::source::ModelSource;
use super::tokens::{MetricTokenizer, id_tensor};
use crate::support::device::Placement;

/// A text encoder.
pub(crate) struct Bert {
    /// Tokenizer.
    pub(crate) tokenizer: MetricTokenizer,
    /// Device of the weights.
    pub(crate) device: Device,
    encoder: BertEncoder,
}

/// An encoder with all its layers, for embeddings of whole texts.
pub(crate) struct WholeBert {
    /// The encoder.
    pub(crate) bert: Bert,
    /// The pooler, if the checkpoint has one.
    pub(crate) pooler: Option<BertPooler>,
    /// Width of the hidden states.
    pub(crate) width: usize,
    /// Hash of the weights.
    pub(crate) hash: String,
}

/// Model families; they differ in position ids.
enum BertEncoder {
    Bert(bert::BertModel),
    /// XLM-R has the architecture of `RoBERTa`.
    Roberta(xlm_roberta::XLMRobertaModel),
}

/// Prefixes of tensor names in checkpoints where the encoder is a part of a larger model.
const PREFIXES: [&str; 2] = ["bert.", "roberta."];
/// Heads that a checkpoint may have on top.
const HEADS: [&str; 5] = ["pooler.", "cls.", "lm_head.", "classifier.", "qa_outputs."];

impl Bert {
    /// Loads the encoder up to `layer`, or up to bert-score's default layer for this checkpoint.
    /// Also returns the layer and the hash of the weights.
    pub(crate) fn load(
        source: &ModelSource,
        layer: Option<usize>,
        placement: &Placement,
    ) -> Result<(Self, usize, String)> {
        let config = source.read_config(config::parse_bert)?;
        let Some(layer) = layer.or_else(|| default_layer(&source.name)) else {
            bail!(
                "{}: bert-score has no default layer for this checkpoint\n\
                 hint: name one with --bert-layer; bert-score uses 9 or 10 of 12 layers, 17 or 18 of 24",
                source.name
            );
        };
        let layers = config.model.num_hidden_layers;
        ensure!(
            layer <= layers,
            "--bert-layer {layer}: {} has {layers} layers\nhint: 0 means the embeddings",
            source.name,
        );
        let tokenizer =
            MetricTokenizer::read(source, config.max_tokens(), config.has_leading_space)?;
        tokenizer.check_vocabulary(config.model.vocab_size)?;
        let weights = source.read_weights("BERT", placement, rename_tensor)?;
        let vb = weights.builder(&placement.device);
        // Load all layers to detect errors above the chosen layer too; tensors are shared, not
        // copied.
        let encoder = BertEncoder::load(&vb, &config, layers)
            .and_then(|_| BertEncoder::load(&vb, &config, layer))
            .with_context(|| source.folder.display().to_string())?;
        weights.check_all_used()?;
        let device = placement.device.clone();
        let bert = Self { tokenizer, device, encoder };
        Ok((bert, layer, weights.digest().short_hex()))
    }

    /// Loads all layers and the pooler. Texts are truncated to `max_tokens` tokens, or to fewer if
    /// the model or its tokenizer has a lower limit.
    pub(crate) fn load_whole(
        source: &ModelSource,
        max_tokens: Option<usize>,
        placement: &Placement,
    ) -> Result<WholeBert> {
        let config = source.read_config(config::parse_bert)?;
        let positions = config.max_tokens();
        let max_tokens = max_tokens.map_or(positions, |limit| limit.min(positions));
        let tokenizer = MetricTokenizer::read(source, max_tokens, false)?;
        tokenizer.check_vocabulary(config.model.vocab_size)?;
        let weights = source.read_weights("encoder", placement, rename_pooler_or_tensor)?;
        let vb = weights.builder(&placement.device);
        let width = config.model.hidden_size;
        let load = || {
            let encoder = BertEncoder::load(&vb, &config, config.model.num_hidden_layers)?;
            let vb = vb.pp("pooler.dense");
            let has_pooler = vb.contains_tensor("weight");
            let pooler = has_pooler.then(|| BertPooler::load(&vb, width)).transpose()?;
            Ok::<_, candle::Error>((encoder, pooler))
        };
        let (encoder, pooler) = load().with_context(|| source.folder.display().to_string())?;
        weights.check_all_used()?;
        let bert = Self { tokenizer, device: placement.device.clone(), encoder };
        Ok(WholeBert { bert, pooler, width, hash: weights.digest().short_hex() })
    }

    /// Computes the hidden states of texts of equal length.
    ///
    /// # Shapes
    /// b sequences of t tokens → (b, t, c).
    pub(crate) fn hidden_states(&self, sequences: &[&[u32]]) -> candle::Result<Tensor> {
        let ids = id_tensor(sequences, &self.device)?;
        let segments = ids.zeros_like()?;
        match &self.encoder {
            BertEncoder::Bert(model) => model.forward(&ids, &segments, None),
            BertEncoder::Roberta(model) => {
                let mask = ids.ones_like()?;
                model.forward(&ids, &mask, &segments, None, None, None)
            }
        }
    }
}

impl BertEncoder {
    fn load(vb: &VarBuilder, config: &BertConfig, layers: usize) -> candle::Result<Self> {
        let model = bert::Config { num_hidden_layers: layers, ..config.model.clone() };
        Ok(if config.is_roberta {
            let model = roberta_config(&model);
            Self::Roberta(xlm_roberta::XLMRobertaModel::new(&model, vb.clone())?)
        } else {
            Self::Bert(bert::BertModel::load(vb.clone(), &model)?)
        })
    }
}

/// Converts the sizes to Candle's `RoBERTa` configuration.
fn roberta_config(bert: &bert::Config) -> xlm_roberta::Config {
    xlm_roberta::Config {
        hidden_size: bert.hidden_size,
        layer_norm_eps: bert.layer_norm_eps,
        attention_probs_dropout_prob: 0.0,
        hidden_dropout_prob: 0.0,
        num_attention_heads: bert.num_attention_heads,
        position_embedding_type: "absolute".to_owned(),
        intermediate_size: bert.intermediate_size,
        hidden_act: match bert.hidden_act {
            bert::HiddenAct::Gelu => Activation::Gelu,
            bert::HiddenAct::GeluApproximate => Activation::NewGelu,
            bert::HiddenAct::Relu => Activation::Relu,
        },
        num_hidden_layers: bert.num_hidden_layers,
        vocab_size: bert.vocab_size,
        max_position_embeddings: bert.max_position_embeddings,
        type_vocab_size: bert.type_vocab_size,
        pad_token_id: bert.pad_token_id as u32,
    }
}

/// Returns the name by which Candle loads a tensor; `None` for tensors of heads.
fn rename_tensor(name: &str) -> Option<String> {
    let short = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    let short = short.unwrap_or(name);
    if HEADS.iter().any(|head| short.starts_with(head)) {
        return None;
    }
    // Early checkpoints use TensorFlow names.
    let renamed = short.replace("LayerNorm.gamma", "LayerNorm.weight");
    Some(renamed.replace("LayerNorm.beta", "LayerNorm.bias"))
}

/// Like [`rename_tensor`], but keeps the pooler.
fn rename_pooler_or_tensor(name: &str) -> Option<String> {
    let short = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    if short.starts_with("pooler.dense.") { Some(short.to_owned()) } else { rename_tensor(name) }
}

/// Returns the layer whose states correlate best with human ratings of translations, by checkpoint
/// name (`model2layers` in bert-score's `utils.py`).
fn default_layer(name: &str) -> Option<usize> {
    const DEFAULT_LAYERS: [(&str, usize); 15] = [
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
    let entry = DEFAULT_LAYERS.iter().find(|(known, _)| *known == last);
    entry.map(|(_, layer)| *layer)
}
