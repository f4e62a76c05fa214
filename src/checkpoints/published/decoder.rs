//! Decoder part of a configuration, with the defaults of its family
//! (transformers' `configuration_llama.py`, `configuration_mistral.py`, `configuration_qwen2.py`).

use acem3_experts::decoder::{DecoderConfig, RopeScaling};
use anyhow::{Result, bail};

use crate::checkpoints::published::config_fields::ConfigFields;

/// Upper bounds of sizes, larger than in any model. The product of two sizes cannot overflow.
const LARGEST: usize = 1 << 24;
const DEEPEST: usize = 4096;

/// Decoder family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecoderFamily {
    /// Llama, Vicuna and derived models.
    Llama,
    /// Mistral.
    Mistral,
    /// Qwen2.
    Qwen2,
}

impl DecoderFamily {
    /// Returns the family of a `model_type`.
    pub(super) fn of(model_type: &str) -> Result<Self> {
        match model_type {
            "llama" => Ok(Self::Llama),
            "mistral" => Ok(Self::Mistral),
            "qwen2" => Ok(Self::Qwen2),
            other => bail!(
                "model_type `{other}` is not supported\n\
                 hint: use llama, mistral, qwen2, llava, llava_next, llava_llama or llava_mistral"
            ),
        }
    }

    /// Returns the default chat template of multimodal models of this family.
    pub(super) fn dialogue(self) -> &'static str {
        match self {
            Self::Llama => "vicuna",
            Self::Mistral => "mistral",
            Self::Qwen2 => "chatml",
        }
    }
}

/// Reads the decoder configuration. The caller checks the unconsumed fields.
pub(super) fn decoder(fields: &mut ConfigFields, family: DecoderFamily) -> Result<DecoderConfig> {
    let mistral = family == DecoderFamily::Mistral;
    let qwen2 = family == DecoderFamily::Qwen2;
    let act: String = fields.or("hidden_act", "silu".to_owned())?;
    if !matches!(act.as_str(), "silu" | "swish") {
        bail!("hidden_act is `{act}`, only silu is supported");
    }
    fields.only("mlp_bias", false)?;
    fields.only("partial_rotary_factor", 1.0)?;
    let layers = fields.or("num_hidden_layers", 32)?;
    let biased = fields.or("attention_bias", false)? && family == DecoderFamily::Llama;
    let (sliding_window, max_window_layers) = window(fields, family, layers)?;
    let (rope_theta, rope_scaling) = rope(fields)?;
    let inner = match family {
        DecoderFamily::Llama => 11_008,
        DecoderFamily::Mistral => 14_336,
        DecoderFamily::Qwen2 => 22_016,
    };
    let context = match family {
        DecoderFamily::Llama => 2048,
        DecoderFamily::Mistral => 131_072,
        DecoderFamily::Qwen2 => 32_768,
    };
    let config = DecoderConfig {
        vocab_size: fields.or("vocab_size", if qwen2 { 151_936 } else { 32_000 })?,
        hidden_size: fields.or("hidden_size", 4096)?,
        intermediate_size: fields.or("intermediate_size", inner)?,
        num_hidden_layers: layers,
        num_attention_heads: fields.or("num_attention_heads", 32)?,
        num_key_value_heads: if mistral && !fields.has("num_key_value_heads") {
            Some(8)
        } else {
            fields.take("num_key_value_heads")?
        },
        head_dim: fields.take("head_dim")?,
        max_position_embeddings: fields.or("max_position_embeddings", context)?,
        rms_norm_eps: fields.or("rms_norm_eps", 1e-6)?,
        rope_theta,
        tie_word_embeddings: fields.or("tie_word_embeddings", false)?,
        attention_bias: qwen2 || biased,
        output_bias: biased,
        rope_scaling,
        sliding_window,
        max_window_layers,
    };
    for (name, value, most) in [
        ("vocab_size", config.vocab_size, LARGEST),
        ("hidden_size", config.hidden_size, LARGEST),
        ("intermediate_size", config.intermediate_size, LARGEST),
        ("num_attention_heads", config.num_attention_heads, LARGEST),
        ("num_key_value_heads", config.kv_heads(), LARGEST),
        ("num_hidden_layers", config.num_hidden_layers, DEEPEST),
    ] {
        if value > most {
            bail!("{name} is {value}, expected at most {most}");
        }
    }
    if let Err(problem) = config.check() {
        bail!("{problem}");
    }
    Ok(config)
}

/// Returns the sliding window and the first layer that uses it.
fn window(
    fields: &mut ConfigFields,
    family: DecoderFamily,
    layers: usize,
) -> Result<(Option<usize>, usize)> {
    let (window, from) = match family {
        DecoderFamily::Llama => {
            fields.only("use_sliding_window", false)?;
            (fields.take("sliding_window")?, 0)
        }
        DecoderFamily::Mistral => {
            // Absent means 4096, null means no window.
            let absent = !fields.has("sliding_window");
            let window = fields.take("sliding_window")?;
            (window.or(absent.then_some(4096)), 0)
        }
        DecoderFamily::Qwen2 => {
            let on = fields.or("use_sliding_window", false)?;
            let window = fields.or("sliding_window", 4096)?;
            let from = fields.or("max_window_layers", 28)?;
            if on { (Some(window), from) } else { (None, 0) }
        }
    };
    if family == DecoderFamily::Llama && window.is_some() {
        bail!("sliding_window is set, but models of type llama do not support it");
    }
    if let Some(types) = fields.take::<Vec<String>>("layer_types")? {
        let slides = |i: usize| window.is_some() && i >= from;
        let name = |i| {
            if slides(i) {
                "sliding_attention"
            } else {
                "full_attention"
            }
        };
        let implied: Vec<&str> = (0..layers.min(types.len() + 1)).map(name).collect();
        if types != implied {
            bail!("layer_types {types:?} do not match the sliding window {window:?}");
        }
    }
    Ok((window, from))
}

/// Reads base and scaling of the rotary embedding: `rope_theta` and `rope_scaling`, or both in
/// `rope_parameters` (transformers 5).
fn rope(fields: &mut ConfigFields) -> Result<(f64, Option<RopeScaling>)> {
    let outer: Option<f64> = fields.take("rope_theta")?;
    let scaling = match fields.object("rope_parameters")? {
        Some(parameters) => {
            fields.take::<serde_json::Value>("rope_scaling")?;
            Some(parameters)
        }
        None => fields.object("rope_scaling")?,
    };
    let Some(mut scaling) = scaling else {
        return Ok((outer.unwrap_or(10_000.0), None));
    };
    let theta = scaling.take("rope_theta")?.or(outer).unwrap_or(10_000.0);
    let old: Option<String> = scaling.take("type")?;
    let kind: Option<String> = scaling.take("rope_type")?;
    scaling.only("partial_rotary_factor", 1.0)?;
    let kind = kind.or(old).unwrap_or_else(|| "default".to_owned());
    let stretched = match kind.as_str() {
        "default" => None,
        "linear" => Some(RopeScaling::Linear {
            factor: scaling.need("factor")?,
        }),
        "llama3" => Some(RopeScaling::Llama3 {
            factor: scaling.need("factor")?,
            low_freq_factor: scaling.need("low_freq_factor")?,
            high_freq_factor: scaling.need("high_freq_factor")?,
            original_max_position_embeddings: scaling.need("original_max_position_embeddings")?,
        }),
        other => bail!(
            "rope_scaling of type `{other}` is not supported\n\
             hint: use a checkpoint with type default, linear or llama3"
        ),
    };
    scaling.finish(&[])?;
    Ok((theta, stretched))
}
