//! What the metadata of a GGUF file says of its decoder (`Keys` in the `gguf` package's
//! `constants.py`), told in the words of a `config.json`, whose rules then hold for it.

use acem3_experts::decoder::{DecoderConfig, RopeScaling};
use anyhow::{Context, Result, bail};
use candle::Tensor;
use serde_json::{Map, Value as Json, json};

use super::super::decoder::{DecoderFamily, decoder as described};
use crate::checkpoints::gguf::{self, Header};
use crate::checkpoints::published::config_fields::ConfigFields;

/// Keys of the metadata that mean what a field of a `config.json` means, and whether they have to be
/// there.
const SAME: [(&str, &str, bool); 9] = [
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
/// Keys that say nothing about what is computed.
const HARMLESS: [&str; 5] = [
    // The embedding's rows count.
    "vocab_size",
    "tensor_data_layout",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    // Compared with the size of a head.
    "rope.dimension_count",
];

/// The architecture, one that is known.
pub(super) fn architecture(header: &Header) -> Result<&'static str> {
    let name = header
        .text("general.architecture")?
        .context("it does not say general.architecture\nhint: the file is no model's")?;
    if let Some(parts) = header.number("split.count")?
        && parts > 1
    {
        bail!(
            "it is one of {parts} parts of a model\n\
             hint: join them with llama.cpp's `gguf-split --merge`"
        );
    }
    match name {
        "llama" => Ok("llama"),
        "qwen2" => Ok("qwen2"),
        other => bail!(
            "general.architecture is `{other}`, which is not supported\n\
             hint: llama (Llama and Mistral) and qwen2 are"
        ),
    }
}

/// The decoder. `ignored`: keys that are known to change nothing.
pub(super) fn decoder(
    header: &Header,
    architecture: &str,
    ignored: &[String],
) -> Result<DecoderConfig> {
    let prefix = format!("{architecture}.");
    let mut of_model = Map::new();
    for (key, value) in &header.metadata {
        let Some(short) = key.strip_prefix(&prefix) else {
            continue;
        };
        if !HARMLESS.contains(&short) {
            let value = gguf::json(value).with_context(|| format!("{key} is not finite"))?;
            of_model.insert(short.to_owned(), value);
        }
    }
    let mut fields = translated(header, &prefix, of_model)?;
    let shape = |name: &str| header.tensor(name).map(|info| info.shape.as_slice());
    let rows = shape("token_embd.weight").and_then(|shape| shape.first());
    let rows =
        rows.context("it has no tensor `token_embd.weight`\nhint: the file is no model's")?;
    let has = |name: &str| shape(name).is_some();
    fields.insert("vocab_size".to_owned(), json!(rows));
    // The output layer is written where it is not the embedding.
    fields.insert(
        "tie_word_embeddings".to_owned(),
        json!(!has("output.weight")),
    );
    let family = DecoderFamily::of(architecture)?;
    let mut fields = ConfigFields::new("", fields);
    for name in ["expert_count", "expert_used_count"] {
        fields.only(&format!("{prefix}{name}"), 0)?;
    }
    fields.only(&format!("{prefix}attention.causal"), true)?;
    let mut config = described(&mut fields, family)?;
    fields.finish(ignored)?;
    if family == DecoderFamily::Llama {
        config.attention_bias = has("blk.0.attn_q.bias");
        config.output_bias = has("blk.0.attn_output.bias");
    }
    for name in ["attention.value_length", "rope.dimension_count"] {
        let key = format!("{prefix}{name}");
        let (d, got) = (config.head_size(), header.number(&key)?);
        if got.is_some_and(|got| got != d as u64) {
            bail!(
                "{key} is {}, expected the size of a head, {d}",
                got.unwrap_or(0)
            );
        }
    }
    Ok(config)
}

/// The fields of a `config.json` that say the same. What is not known keeps its key.
fn translated(
    header: &Header,
    prefix: &str,
    mut of_model: Map<String, Json>,
) -> Result<Map<String, Json>> {
    let mut fields = Map::new();
    of_model.remove("attention.value_length");
    for (theirs, ours, needed) in SAME {
        match of_model.remove(theirs) {
            Some(value) => {
                fields.insert(ours.to_owned(), value);
            }
            None if needed => bail!(
                "it does not say {prefix}{theirs}\n\
                 hint: convert the original checkpoint again with today's llama.cpp"
            ),
            None => {}
        }
    }
    let kind = header.text(&format!("{prefix}rope.scaling.type"))?;
    let factor = of_model.remove("rope.scaling.factor");
    let old = of_model.remove("rope.scale_linear");
    of_model.remove("rope.scaling.type");
    let kind = kind.unwrap_or(if old.is_some() { "linear" } else { "none" });
    if kind != "none" {
        let scaling = json!({"rope_type": kind, "factor": factor.or(old)});
        fields.insert("rope_scaling".to_owned(), scaling);
    }
    let rest = of_model.into_iter();
    fields.extend(rest.map(|(key, value)| (format!("{prefix}{key}"), value)));
    Ok(fields)
}

/// Stretches the rotary angles by a table, as Llama 3.1 has it.
pub(super) fn stretch(decoder: &mut DecoderConfig, factors: &Tensor) -> Result<()> {
    if decoder.rope_scaling.is_some() {
        bail!("it has both a `rope_freqs.weight` and a scaling of another kind");
    }
    let factors = factors.flatten_all()?.to_vec1::<f32>()?;
    let factors = factors.into_iter().map(f64::from).collect();
    decoder.rope_scaling = Some(RopeScaling::Table { factors });
    if let Err(problem) = decoder.check() {
        bail!("tensor `rope_freqs.weight`: {problem}");
    }
    Ok(())
}
