//! Decoder part of a configuration, with the defaults of its family
//! (transformers' `configuration_llama.py`, `configuration_mistral.py`, `configuration_qwen2.py`).

use acem3_experts::decoder::{DecoderConfig, RopeScaling};
use anyhow::{Result, bail};

use crate::checkpoints::published::config_fields::{ConfigFields, unsupported};

/// Upper bounds of sizes, larger than in any model. The product of two sizes cannot overflow.
const MAX_SIZE: usize = 1 << 24;
const MAX_LAYERS: usize = 4096;

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
    pub(super) fn from_model_type(model_type: &str) -> Result<Self> {
        match model_type {
            "llama" => Ok(Self::Llama),
            "mistral" => Ok(Self::Mistral),
            "qwen2" => Ok(Self::Qwen2),
            other => Err(unsupported(
                &format!("model_type `{other}` is not supported"),
                "use llama, mistral, qwen2, gemma3, llava, llava_next, llava_onevision, llava_llama, \
                 llava_mistral, llava_qwen, llava_qwen2, internvl or internvl_chat",
            )),
        }
    }

    /// Returns the family of LLaVA's own code by the name of its class. `architectures`: the JSON of the
    /// field.
    pub(super) fn of_llava_class(architectures: &str) -> Self {
        if architectures.contains("Qwen") {
            Self::Qwen2
        } else if architectures.contains("Mistral") {
            Self::Mistral
        } else {
            Self::Llama
        }
    }

    /// Returns the default chat template of multimodal models of this family.
    pub(super) fn default_chat_template(self) -> &'static str {
        match self {
            Self::Llama => "vicuna",
            Self::Mistral => "mistral",
            Self::Qwen2 => "chatml",
        }
    }
}

/// Reads the decoder configuration. The caller checks the unconsumed fields.
pub(super) fn parse_decoder(
    fields: &mut ConfigFields,
    family: DecoderFamily,
) -> Result<DecoderConfig> {
    let is_mistral = family == DecoderFamily::Mistral;
    let is_qwen2 = family == DecoderFamily::Qwen2;
    let activation: String = fields.take_or("hidden_act", "silu".to_owned())?;
    if !matches!(activation.as_str(), "silu" | "swish") {
        return Err(unsupported(
            &format!("hidden_act is `{activation}`, only silu is supported"),
            "use another checkpoint",
        ));
    }
    fields.expect_value("mlp_bias", false)?;
    fields.expect_value("partial_rotary_factor", 1.0)?;
    let layers = fields.take_or("num_hidden_layers", 32)?;
    let has_bias = fields.take_or("attention_bias", false)? && family == DecoderFamily::Llama;
    let (sliding_window, max_window_layers) = parse_sliding_window(fields, family, layers)?;
    let (rope_theta, rope_scaling) = parse_rope(fields)?;
    let intermediate_size = match family {
        DecoderFamily::Llama => 11_008,
        DecoderFamily::Mistral => 14_336,
        DecoderFamily::Qwen2 => 22_016,
    };
    let context_length = match family {
        DecoderFamily::Llama => 2048,
        DecoderFamily::Mistral => 131_072,
        DecoderFamily::Qwen2 => 32_768,
    };
    let config = DecoderConfig {
        vocab_size: fields.take_or("vocab_size", if is_qwen2 { 151_936 } else { 32_000 })?,
        hidden_size: fields.take_or("hidden_size", 4096)?,
        intermediate_size: fields.take_or("intermediate_size", intermediate_size)?,
        num_hidden_layers: layers,
        num_attention_heads: fields.take_or("num_attention_heads", 32)?,
        num_key_value_heads: if is_mistral && !fields.has("num_key_value_heads") {
            Some(8)
        } else {
            fields.take("num_key_value_heads")?
        },
        head_dim: fields.take("head_dim")?,
        max_position_embeddings: fields.take_or("max_position_embeddings", context_length)?,
        rms_norm_eps: fields.take_or("rms_norm_eps", 1e-6)?,
        rope_theta,
        tie_word_embeddings: fields.take_or("tie_word_embeddings", false)?,
        attention_bias: is_qwen2 || has_bias,
        output_bias: has_bias,
        rope_scaling,
        sliding_window,
        max_window_layers,
        gemma: None,
    };
    check_sizes(&config)?;
    Ok(config)
}

/// Returns an error if a decoder is larger than any model, or a value is invalid.
pub(super) fn check_sizes(config: &DecoderConfig) -> Result<()> {
    for (name, value, max) in [
        ("vocab_size", config.vocab_size, MAX_SIZE),
        ("hidden_size", config.hidden_size, MAX_SIZE),
        ("intermediate_size", config.intermediate_size, MAX_SIZE),
        ("num_attention_heads", config.num_attention_heads, MAX_SIZE),
        ("num_key_value_heads", config.kv_heads(), MAX_SIZE),
        ("num_hidden_layers", config.num_hidden_layers, MAX_LAYERS),
    ] {
        if value > max {
            bail!("{name} is {value}, expected at most {max}");
        }
    }
    if let Err(problem) = config.validate() {
        bail!("{problem}");
    }
    Ok(())
}

/// Returns the sliding window and the first layer that uses it.
fn parse_sliding_window(
    fields: &mut ConfigFields,
    family: DecoderFamily,
    layers: usize,
) -> Result<(Option<usize>, usize)> {
    let (window, first_layer) = match family {
        DecoderFamily::Llama => {
            fields.expect_value("use_sliding_window", false)?;
            (fields.take("sliding_window")?, 0)
        }
        DecoderFamily::Mistral => {
            // Absent means 4096, null means no window.
            let is_absent = !fields.has("sliding_window");
            let window = fields.take("sliding_window")?;
            (window.or(is_absent.then_some(4096)), 0)
        }
        DecoderFamily::Qwen2 => {
            let is_enabled = fields.take_or("use_sliding_window", false)?;
            let window = fields.take_or("sliding_window", 4096)?;
            let first_layer = fields.take_or("max_window_layers", 28)?;
            if is_enabled { (Some(window), first_layer) } else { (None, 0) }
        }
    };
    if family == DecoderFamily::Llama && window.is_some() {
        bail!("sliding_window is set, but models of type llama do not support it");
    }
    if let Some(types) = fields.take::<Vec<String>>("layer_types")? {
        let slides = |i: usize| window.is_some() && i >= first_layer;
        let name = |i| {
            if slides(i) { "sliding_attention" } else { "full_attention" }
        };
        let implied: Vec<&str> = (0..layers.min(types.len() + 1)).map(name).collect();
        if types != implied {
            bail!("layer_types {types:?} do not match the sliding window {window:?}");
        }
    }
    Ok((window, first_layer))
}

/// Reads base and scaling of the rotary embedding: `rope_theta` and `rope_scaling`, or both in
/// `rope_parameters` (transformers 5).
fn parse_rope(fields: &mut ConfigFields) -> Result<(f64, Option<RopeScaling>)> {
    let outer: Option<f64> = fields.take("rope_theta")?;
    let scaling = match fields.take_object("rope_parameters")? {
        Some(parameters) => {
            fields.take::<serde_json::Value>("rope_scaling")?;
            Some(parameters)
        }
        None => fields.take_object("rope_scaling")?,
    };
    let (theta, rope_scaling) = match scaling {
        Some(scaling) => parse_rope_scaling(scaling)?,
        None => (None, None),
    };
    Ok((theta.or(outer).unwrap_or(10_000.0), rope_scaling))
}

/// Reads an object with the scaling of the rotary angles, and their base if it has one.
pub(super) fn parse_rope_scaling(
    mut scaling: ConfigFields,
) -> Result<(Option<f64>, Option<RopeScaling>)> {
    let theta = scaling.take("rope_theta")?;
    let old_kind: Option<String> = scaling.take("type")?;
    let kind: Option<String> = scaling.take("rope_type")?;
    scaling.expect_value("partial_rotary_factor", 1.0)?;
    let kind = kind.or(old_kind).unwrap_or_else(|| "default".to_owned());
    let rope_scaling = match kind.as_str() {
        "default" => None,
        // The scaling begins beyond `max_position_embeddings`, the limit of a prompt
        // (`_compute_dynamic_ntk_parameters` in transformers' `modeling_rope_utils.py`).
        "dynamic" => {
            scaling.require::<f64>("factor")?;
            None
        }
        "linear" => Some(RopeScaling::Linear { factor: scaling.require("factor")? }),
        "llama3" => Some(RopeScaling::Llama3 {
            factor: scaling.require("factor")?,
            low_freq_factor: scaling.require("low_freq_factor")?,
            high_freq_factor: scaling.require("high_freq_factor")?,
            original_max_position_embeddings: scaling
                .require("original_max_position_embeddings")?,
        }),
        other => {
            return Err(unsupported(
                &format!("rope_scaling of type `{other}` is not supported"),
                "use a checkpoint with type default, dynamic, linear or llama3",
            ));
        }
    };
    scaling.finish(&[])?;
    Ok((theta, rope_scaling))
}
