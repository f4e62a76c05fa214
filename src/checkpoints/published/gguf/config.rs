//! Decoder configuration from the metadata of a GGUF file (`Keys` in the `gguf` package's
//! `constants.py`), translated to the fields of a `config.json` and checked like one.

use acem3_experts::decoder::{DecoderConfig, RopeScaling};
use anyhow::{Context, Result, bail};
use candle::Tensor;
use serde_json::{Map, Value as Json, json};

use super::super::decoder::{DecoderFamily, parse_decoder};
use crate::checkpoints::gguf::{self, GgufHeader};
use crate::checkpoints::published::config_fields::ConfigFields;

/// Metadata keys with the equivalent field of a `config.json`, and whether the key is required.
const FIELD_NAMES: [(&str, &str, bool); 9] = [
    ("context_length", "max_position_embeddings", true),
    ("embedding_length", "hidden_size", true),
    ("block_count", "num_hidden_layers", true),
    ("feed_forward_length", "intermediate_size", true),
    ("attention.head_count", "num_attention_heads", true),
    ("attention.head_count_kv", "num_key_value_heads", false),
    ("attention.layer_norm_rms_epsilon", "rms_norm_eps", true),
    ("attention.key_length", "head_dim", false),
    ("rope.freq_base", "rope_theta", false),
];
/// Keys that do not affect the computation.
const IGNORED_KEYS: [&str; 5] = [
    // The number of embedding rows is used instead.
    "vocab_size",
    "tensor_data_layout",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    // Compared with the head size.
    "rope.dimension_count",
];

/// Returns the architecture if it is supported.
pub(super) fn read_architecture(header: &GgufHeader) -> Result<&'static str> {
    let name = header
        .string("general.architecture")?
        .context("general.architecture is missing\nhint: use the GGUF file of a language model")?;
    if let Some(parts) = header.number("split.count")?
        && parts > 1
    {
        bail!(
            "one of {parts} parts of a split model\n\
             hint: merge the parts with llama.cpp's `gguf-split --merge`"
        );
    }
    match name {
        "llama" => Ok("llama"),
        "qwen2" => Ok("qwen2"),
        other => bail!(
            "general.architecture `{other}` is not supported\n\
             hint: use a model of architecture llama (Llama and Mistral) or qwen2"
        ),
    }
}

/// Reads the decoder configuration. `ignored`: unknown keys that do not affect the computation.
pub(super) fn read_decoder(
    header: &GgufHeader,
    architecture: &str,
    ignored: &[String],
) -> Result<DecoderConfig> {
    let prefix = format!("{architecture}.");
    let mut model_metadata = Map::new();
    for (key, value) in &header.metadata {
        let Some(short) = key.strip_prefix(&prefix) else {
            continue;
        };
        if !IGNORED_KEYS.contains(&short) {
            let value = gguf::to_json(value).with_context(|| format!("{key} is not finite"))?;
            model_metadata.insert(short.to_owned(), value);
        }
    }
    let mut fields = to_hf_config(header, &prefix, model_metadata)?;
    let shape = |name: &str| header.tensor(name).map(|info| info.shape.as_slice());
    let rows = shape("token_embd.weight").and_then(|shape| shape.first());
    let rows = rows.context(
        "missing tensor `token_embd.weight`\nhint: use the GGUF file of a language model",
    )?;
    let has = |name: &str| shape(name).is_some();
    fields.insert("vocab_size".to_owned(), json!(rows));
    // The file contains an output layer only if it is not tied.
    fields.insert("tie_word_embeddings".to_owned(), json!(!has("output.weight")));
    let family = DecoderFamily::from_model_type(architecture)?;
    let mut fields = ConfigFields::new("", fields);
    for name in ["expert_count", "expert_used_count"] {
        fields.expect_value(&format!("{prefix}{name}"), 0)?;
    }
    fields.expect_value(&format!("{prefix}attention.causal"), true)?;
    let mut config = parse_decoder(&mut fields, family)?;
    fields.finish(ignored)?;
    if family == DecoderFamily::Llama {
        config.attention_bias = has("blk.0.attn_q.bias");
        config.output_bias = has("blk.0.attn_output.bias");
    }
    for name in ["attention.value_length", "rope.dimension_count"] {
        let key = format!("{prefix}{name}");
        let (head_size, value) = (config.head_size(), header.number(&key)?);
        if value.is_some_and(|value| value != head_size as u64) {
            bail!("{key} is {}, expected the head size, {head_size}", value.unwrap_or(0));
        }
    }
    Ok(config)
}

/// Translates metadata to the fields of a `config.json`. Unknown keys are kept.
fn to_hf_config(
    header: &GgufHeader,
    prefix: &str,
    mut model_metadata: Map<String, Json>,
) -> Result<Map<String, Json>> {
    let mut fields = Map::new();
    model_metadata.remove("attention.value_length");
    for (key, field, is_required) in FIELD_NAMES {
        match model_metadata.remove(key) {
            Some(value) => {
                fields.insert(field.to_owned(), value);
            }
            None if is_required => bail!(
                "{prefix}{key} is missing\n\
                 hint: convert the original checkpoint again with a current version of llama.cpp"
            ),
            None => {}
        }
    }
    let kind = header.string(&format!("{prefix}rope.scaling.type"))?;
    let factor = model_metadata.remove("rope.scaling.factor");
    let old_factor = model_metadata.remove("rope.scale_linear");
    model_metadata.remove("rope.scaling.type");
    let kind = kind.unwrap_or(if old_factor.is_some() { "linear" } else { "none" });
    if kind != "none" {
        let scaling = json!({"rope_type": kind, "factor": factor.or(old_factor)});
        fields.insert("rope_scaling".to_owned(), scaling);
    }
    let unknown = model_metadata.into_iter();
    fields.extend(unknown.map(|(key, value)| (format!("{prefix}{key}"), value)));
    Ok(fields)
}

/// Sets the rotary scaling to a table of factors (Llama 3.1).
pub(super) fn apply_rope_factors(decoder: &mut DecoderConfig, factors: &Tensor) -> Result<()> {
    if decoder.rope_scaling.is_some() {
        bail!("conflicting rotary scaling: tensor `rope_freqs.weight` and rope.scaling.type");
    }
    let factors = factors.flatten_all()?.to_vec1::<f32>()?;
    let factors = factors.into_iter().map(f64::from).collect();
    decoder.rope_scaling = Some(RopeScaling::Table { factors });
    if let Err(problem) = decoder.validate() {
        bail!("tensor `rope_freqs.weight`: {problem}");
    }
    Ok(())
}
