//! Parser of `config.json` for BERT, `RoBERTa` and BART.

use acem3_kernels::Activation;
use anyhow::{Result, bail, ensure};
use candle_transformers::models::bert;
use serde_json::{Map, Value};

use super::layer::BartLayerSizes;
use crate::checkpoints::published::config_fields::ConfigFields;

/// Fields that do not affect the results, or that belong to heads that are not loaded.
const IGNORED: [&str; 27] = [
    "activation_dropout",
    "add_bias_logits",
    "add_final_layer_norm",
    "attention_probs_dropout_prob",
    "classif_dropout",
    "classifier_dropout",
    "decoder_layerdrop",
    "directionality",
    "encoder_layerdrop",
    "extra_pos_embeddings",
    "force_bos_token_to_be_generated",
    "gradient_checkpointing",
    "hidden_dropout_prob",
    "init_std",
    "initializer_range",
    "layer_norm_eps",
    "model_type",
    "normalize_before",
    "normalize_embedding",
    "num_labels",
    "output_past",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
    "static_position_embeddings",
];
/// Upper limit of every size; a larger one means a damaged file.
const MAX_SIZE: usize = 1 << 20;

/// Configuration of a BERT or `RoBERTa`.
#[derive(Clone, Debug)]
pub(super) struct BertConfig {
    /// Sizes.
    pub(super) model: bert::Config,
    /// True if position ids start after the padding token's id (`RoBERTa`).
    pub(super) is_roberta: bool,
    /// True if bert-score puts a space before each text.
    pub(super) has_leading_space: bool,
}

impl BertConfig {
    /// Returns the maximum number of tokens of a text, special tokens included.
    pub(super) fn max_tokens(&self) -> usize {
        let unused = if self.is_roberta { self.model.pad_token_id.saturating_add(1) } else { 0 };
        self.model.max_position_embeddings.saturating_sub(unused)
    }
}

/// Configuration of the encoder or the decoder of a BART.
#[derive(Clone, Copy, Debug)]
pub(super) struct BartStackConfig {
    /// Sizes of each layer.
    pub(super) sizes: BartLayerSizes,
    /// Number of layers.
    pub(super) layers: usize,
}

/// Configuration of a BART.
#[derive(Clone, Copy, Debug)]
pub(super) struct BartConfig {
    /// Size of the vocabulary.
    pub(super) vocabulary: usize,
    /// Maximum number of tokens of a text.
    pub(super) max_tokens: usize,
    /// The encoder.
    pub(super) encoder: BartStackConfig,
    /// The decoder.
    pub(super) decoder: BartStackConfig,
    /// True if embeddings are multiplied by the square root of their width.
    pub(super) scales_embeddings: bool,
    /// Token id that the decoder starts with.
    pub(super) start_token: u32,
}

/// Reads the configuration of a BERT or `RoBERTa`.
pub(super) fn parse_bert(map: Map<String, Value>) -> Result<BertConfig> {
    let mut fields = ConfigFields::new("", map);
    let model_type: String = fields.require("model_type")?;
    let is_roberta = match model_type.as_str() {
        "bert" => false,
        "roberta" | "xlm-roberta" | "camembert" => true,
        other => bail!(
            "model_type is {other}\nhint: use a BERT or RoBERTa checkpoint for BERTScore and embeddings, and a BART \
             checkpoint for BARTScore"
        ),
    };
    fields.expect_value("position_embedding_type", "absolute")?;
    let config = BertConfig {
        model: bert::Config {
            vocab_size: fields.require("vocab_size")?,
            hidden_size: fields.require("hidden_size")?,
            num_hidden_layers: fields.require("num_hidden_layers")?,
            num_attention_heads: fields.require("num_attention_heads")?,
            intermediate_size: fields.require("intermediate_size")?,
            hidden_act: match take_activation(&mut fields, "hidden_act")? {
                Activation::GeluPytorchTanh => bert::HiddenAct::GeluApproximate,
                _ => bert::HiddenAct::Gelu,
            },
            max_position_embeddings: fields.require("max_position_embeddings")?,
            type_vocab_size: fields.take_or("type_vocab_size", 2)?,
            layer_norm_eps: fields.take_or("layer_norm_eps", 1e-12)?,
            pad_token_id: fields.take_or("pad_token_id", usize::from(is_roberta))?,
            // Candle uses it as a prefix of tensor names; the renamed tensors have no prefix.
            model_type: None,
            ..bert::Config::default()
        },
        is_roberta,
        has_leading_space: model_type == "roberta",
    };
    reject_unknown_fields(&fields)?;
    let sizes = &config.model;
    check_sizes(&[
        ("vocab_size", sizes.vocab_size),
        ("type_vocab_size", sizes.type_vocab_size),
        ("number of positions", config.max_tokens()),
        ("max_position_embeddings", sizes.max_position_embeddings),
        ("intermediate_size", sizes.intermediate_size),
        ("num_hidden_layers", sizes.num_hidden_layers),
    ])?;
    check_heads(sizes.hidden_size, sizes.num_attention_heads)?;
    Ok(config)
}

/// Reads the configuration of a BART.
pub(super) fn parse_bart(map: Map<String, Value>) -> Result<BartConfig> {
    let mut fields = ConfigFields::new("", map);
    let model_type: String = fields.require("model_type")?;
    ensure!(
        model_type == "bart",
        "model_type is {model_type}\nhint: use a BART checkpoint for BARTScore"
    );
    for (name, value) in [
        ("normalize_before", false),
        ("add_final_layer_norm", false),
        ("static_position_embeddings", false),
        ("normalize_embedding", true),
    ] {
        fields.expect_value(name, value)?;
    }
    // Equal to `encoder_layers`.
    let _: Option<usize> = fields.take("num_hidden_layers")?;
    let hidden = fields.require("d_model")?;
    let act = take_activation(&mut fields, "activation_function")?;
    let mut stack = |side: &str| -> Result<BartStackConfig> {
        let sizes = BartLayerSizes {
            hidden,
            inner: fields.require(&format!("{side}_ffn_dim"))?,
            heads: fields.require(&format!("{side}_attention_heads"))?,
            eps: 1e-5,
            act,
        };
        Ok(BartStackConfig { sizes, layers: fields.require(&format!("{side}_layers"))? })
    };
    let (encoder, decoder) = (stack("encoder")?, stack("decoder")?);
    let config = BartConfig {
        vocabulary: fields.require("vocab_size")?,
        max_tokens: fields.require("max_position_embeddings")?,
        encoder,
        decoder,
        scales_embeddings: fields.take_or("scale_embedding", false)?,
        start_token: fields.take_or("decoder_start_token_id", 2)?,
    };
    reject_unknown_fields(&fields)?;
    check_sizes(&[
        ("vocab_size", config.vocabulary),
        ("max_position_embeddings", config.max_tokens),
    ])?;
    for BartStackConfig { sizes, layers } in [encoder, decoder] {
        check_sizes(&[("ffn_dim", sizes.inner), ("number of layers", layers)])?;
        check_heads(sizes.hidden, sizes.heads)?;
    }
    Ok(config)
}

fn reject_unknown_fields(fields: &ConfigFields) -> Result<()> {
    let ignored = IGNORED.map(str::to_owned);
    match fields.describe_unknown(&ignored) {
        Some(unknown) => bail!(
            "{unknown}\nhint: it may affect the results; use a checkpoint with the standard architecture"
        ),
        None => Ok(()),
    }
}

fn take_activation(fields: &mut ConfigFields, field: &str) -> Result<Activation> {
    let name: String = fields.take_or(field, "gelu".to_owned())?;
    match name.as_str() {
        "gelu" => Ok(Activation::Gelu),
        "gelu_new" | "gelu_pytorch_tanh" => Ok(Activation::GeluPytorchTanh),
        other => bail!("{field} is {other}, expected gelu or gelu_new"),
    }
}

fn check_sizes(sizes: &[(&str, usize)]) -> Result<()> {
    for (name, size) in sizes {
        ensure!((1..=MAX_SIZE).contains(size), "{name}: expected 1 to {MAX_SIZE}, found {size}");
    }
    Ok(())
}

fn check_heads(hidden: usize, heads: usize) -> Result<()> {
    check_sizes(&[("hidden size", hidden), ("number of heads", heads)])?;
    ensure!(
        hidden.is_multiple_of(heads),
        "hidden size: expected a multiple of the {heads} heads, found {hidden}"
    );
    Ok(())
}
