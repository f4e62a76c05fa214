//! What `config.json` says of a BERT, `RoBERTa` or BART.

use acem3_vision::HiddenAct;
use anyhow::{Result, bail, ensure};
use serde_json::{Map, Value};

use super::layer::Sizes;
use crate::checkpoints::published::config_fields::ConfigFields;

/// Fields that change nothing of what is computed here, or that belong to heads that are left out.
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
/// Larger than any model of these kinds: sizes beyond are a damaged file.
const MOST: usize = 1 << 20;

/// What both families have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared {
    /// Words in the vocabulary.
    pub(super) vocabulary: usize,
    /// Tokens that there are positions for.
    pub(super) positions: usize,
}

/// A BERT or `RoBERTa`.
#[derive(Clone, Copy, Debug)]
pub(super) struct BertConfig {
    /// What both families have.
    pub(super) shared: Shared,
    /// Its layers' sizes.
    pub(super) sizes: Sizes,
    /// How many layers it has.
    pub(super) layers: usize,
    /// How many kinds of segments it tells apart.
    pub(super) segments: usize,
    /// The row of the first token's position: `RoBERTa` leaves the first two out.
    pub(super) first: usize,
}

/// A BART.
#[derive(Clone, Copy, Debug)]
pub(super) struct BartConfig {
    /// What both families have.
    pub(super) shared: Shared,
    /// Sizes and number of the encoder's layers.
    pub(super) encoder: (Sizes, usize),
    /// Sizes and number of the decoder's layers.
    pub(super) decoder: (Sizes, usize),
    /// Whether embeddings are multiplied with the root of their width.
    pub(super) scaled: bool,
    /// The token that an answer begins behind.
    pub(super) start: u32,
}

/// Reads the configuration of a BERT or `RoBERTa`; tells whether bert-score begins its texts with a space.
pub(super) fn bert(map: Map<String, Value>) -> Result<(BertConfig, bool)> {
    let mut fields = ConfigFields::new("", map);
    let kind: String = fields.need("model_type")?;
    let roberta = match kind.as_str() {
        "bert" => false,
        "roberta" | "xlm-roberta" | "camembert" => true,
        other => bail!(
            "model_type is {other}\nhint: BERTScore takes checkpoints of BERT and RoBERTa; BARTScore \
             those of BART"
        ),
    };
    fields.only("position_embedding_type", "absolute")?;
    let pad: usize = fields.or("pad_token_id", usize::from(roberta))?;
    let first = if roberta { pad + 1 } else { 0 };
    let positions: usize = fields.need("max_position_embeddings")?;
    let config = BertConfig {
        shared: Shared {
            vocabulary: fields.need("vocab_size")?,
            positions: positions.saturating_sub(first),
        },
        sizes: Sizes {
            hidden: fields.need("hidden_size")?,
            inner: fields.need("intermediate_size")?,
            heads: fields.need("num_attention_heads")?,
            eps: fields.or("layer_norm_eps", 1e-12)?,
            act: act(&fields.or("hidden_act", "gelu".to_owned())?)?,
        },
        layers: fields.need("num_hidden_layers")?,
        segments: fields.or("type_vocab_size", 2)?,
        first,
    };
    finish(&fields)?;
    check(config.shared, config.sizes, config.layers)?;
    ensure!(
        config.segments <= MOST,
        "type_vocab_size is {}",
        config.segments
    );
    Ok((config, kind == "roberta"))
}

/// Reads the configuration of a BART.
pub(super) fn bart(map: Map<String, Value>) -> Result<BartConfig> {
    let mut fields = ConfigFields::new("", map);
    let kind: String = fields.need("model_type")?;
    ensure!(
        kind == "bart",
        "model_type is {kind}\nhint: BARTScore takes checkpoints of BART"
    );
    for (name, value) in [
        ("normalize_before", false),
        ("add_final_layer_norm", false),
        ("static_position_embeddings", false),
        ("normalize_embedding", true),
    ] {
        fields.only(name, value)?;
    }
    // The encoder's number of layers, once more.
    let _: Option<usize> = fields.take("num_hidden_layers")?;
    let hidden = fields.need("d_model")?;
    let act = act(&fields.or("activation_function", "gelu".to_owned())?)?;
    let mut part = |side: &str| -> Result<(Sizes, usize)> {
        let sizes = Sizes {
            hidden,
            inner: fields.need(&format!("{side}_ffn_dim"))?,
            heads: fields.need(&format!("{side}_attention_heads"))?,
            eps: 1e-5,
            act,
        };
        Ok((sizes, fields.need(&format!("{side}_layers"))?))
    };
    let (encoder, decoder) = (part("encoder")?, part("decoder")?);
    let config = BartConfig {
        shared: Shared {
            vocabulary: fields.need("vocab_size")?,
            positions: fields.need("max_position_embeddings")?,
        },
        encoder,
        decoder,
        scaled: fields.or("scale_embedding", false)?,
        start: fields.or("decoder_start_token_id", 2)?,
    };
    finish(&fields)?;
    for (sizes, layers) in [encoder, decoder] {
        check(config.shared, sizes, layers)?;
    }
    Ok(config)
}

fn finish(fields: &ConfigFields) -> Result<()> {
    let ignored = IGNORED.map(str::to_owned);
    match fields.unknown(&ignored) {
        Some(unknown) => bail!(
            "{unknown}\nhint: it may change what is computed; use a checkpoint of the plain kind"
        ),
        None => Ok(()),
    }
}

fn act(name: &str) -> Result<HiddenAct> {
    match name {
        "gelu" => Ok(HiddenAct::Gelu),
        "gelu_new" | "gelu_pytorch_tanh" => Ok(HiddenAct::GeluPytorchTanh),
        other => bail!("the activation is {other}, expected gelu or gelu_new"),
    }
}

fn check(shared: Shared, sizes: Sizes, layers: usize) -> Result<()> {
    let Sizes {
        hidden,
        inner,
        heads,
        ..
    } = sizes;
    let Shared {
        vocabulary,
        positions,
    } = shared;
    for (name, size) in [
        ("vocabulary", vocabulary),
        ("positions", positions),
        ("hidden size", hidden),
        ("size of the MLP", inner),
        ("number of heads", heads),
        ("number of layers", layers),
    ] {
        ensure!((1..=MOST).contains(&size), "the {name} is {size}");
    }
    ensure!(
        hidden.is_multiple_of(heads),
        "the hidden size {hidden} is no multiple of the {heads} heads"
    );
    Ok(())
}
