//! Decoder part of a Gemma 3 configuration, with its defaults (transformers'
//! `configuration_gemma3.py`).

use acem3_experts::decoder::{DecoderConfig, GemmaSettings, RopeScaling};
use anyhow::{Result, bail};
use serde_json::Value;

use super::decoder::{check_sizes, parse_rope_scaling};
use crate::checkpoints::published::config_fields::{ConfigFields, unsupported};

/// Default base of the rotary angles in layers that attend to all earlier tokens.
const GLOBAL_THETA: f64 = 1_000_000.0;
/// Default base of the rotary angles in layers with the sliding window.
const LOCAL_THETA: f64 = 10_000.0;
const SLIDING: &str = "sliding_attention";
const FULL: &str = "full_attention";

/// Settings of the rotary angles.
struct GemmaRope {
    theta: f64,
    scaling: Option<RopeScaling>,
    local_theta: f64,
}

/// Reads the decoder configuration. The caller checks the unconsumed fields.
pub(super) fn parse_gemma_decoder(fields: &mut ConfigFields) -> Result<DecoderConfig> {
    let activation = fields.take_or("hidden_activation", "gelu_pytorch_tanh".to_owned())?;
    if activation != "gelu_pytorch_tanh" {
        return Err(unsupported(
            &format!("hidden_activation is `{activation}`, only gelu_pytorch_tanh is supported"),
            "use another checkpoint",
        ));
    }
    for field in ["attn_logit_softcapping", "final_logit_softcapping"] {
        fields.expect_value(field, Value::Null)?;
    }
    fields.expect_value("use_bidirectional_attention", false)?;
    fields.expect_value("attention_bias", false)?;
    // The class of the key/value cache, which does not affect the computation.
    fields.take::<Value>("cache_implementation")?;
    let layers = fields.take_or("num_hidden_layers", 26)?;
    let full_attention_layers = parse_full_attention_layers(fields, layers)?;
    let sliding_window = fields.take_or("sliding_window", 4096)?;
    let rope = parse_rope(fields)?;
    let config = DecoderConfig {
        vocab_size: fields.take_or("vocab_size", 262_208)?,
        hidden_size: fields.take_or("hidden_size", 2304)?,
        intermediate_size: fields.take_or("intermediate_size", 9216)?,
        num_hidden_layers: layers,
        num_attention_heads: fields.take_or("num_attention_heads", 8)?,
        num_key_value_heads: Some(fields.take_or("num_key_value_heads", 4)?),
        head_dim: Some(fields.take_or("head_dim", 256)?),
        max_position_embeddings: fields.take_or("max_position_embeddings", 131_072)?,
        rms_norm_eps: fields.take_or("rms_norm_eps", 1e-6)?,
        rope_theta: rope.theta,
        tie_word_embeddings: fields.take_or("tie_word_embeddings", true)?,
        attention_bias: false,
        output_bias: false,
        rope_scaling: rope.scaling,
        sliding_window: Some(sliding_window),
        max_window_layers: 0,
        gemma: Some(GemmaSettings {
            full_attention_layers,
            rope_local_base_freq: rope.local_theta,
            query_pre_attn_scalar: fields.take_or("query_pre_attn_scalar", 256.0)?,
        }),
    };
    check_sizes(&config)?;
    Ok(config)
}

/// Returns the layers without the sliding window: those of `layer_types`, otherwise each
/// `sliding_window_pattern`th layer.
fn parse_full_attention_layers(fields: &mut ConfigFields, layers: usize) -> Result<Vec<usize>> {
    let saved_pattern: Option<usize> = fields.take("_sliding_window_pattern")?;
    let pattern = fields.take("sliding_window_pattern")?.or(saved_pattern).unwrap_or(6);
    let Some(types) = fields.take::<Vec<String>>("layer_types")? else {
        if pattern == 0 {
            bail!("sliding_window_pattern is 0, expected at least 1");
        }
        return Ok((1..=layers / pattern).map(|i| i * pattern - 1).collect());
    };
    if types.len() != layers {
        bail!("layer_types has {} entries for {layers} layers", types.len());
    }
    if let Some(other) = types.iter().find(|name| ![SLIDING, FULL].contains(&name.as_str())) {
        bail!("layer_types contains `{other}`, expected {SLIDING} or {FULL}");
    }
    let full = types.iter().enumerate().filter(|(_, name)| *name == FULL);
    Ok(full.map(|(layer, _)| layer).collect())
}

/// Reads the rotary settings: one object per kind of layer (transformers 5), or the older fields.
fn parse_rope(fields: &mut ConfigFields) -> Result<GemmaRope> {
    let outer: Option<f64> = fields.take("rope_theta")?;
    let outer_local: Option<f64> = fields.take("rope_local_base_freq")?;
    let (full, sliding) = match fields.take_object("rope_parameters")? {
        Some(mut parameters) => {
            fields.take::<Value>("rope_scaling")?;
            let objects = (parameters.take_object(FULL)?, parameters.take_object(SLIDING)?);
            parameters.finish(&[])?;
            objects
        }
        None => (fields.take_object("rope_scaling")?, None),
    };
    let parse = |object: Option<ConfigFields>| object.map(parse_rope_scaling).transpose();
    let (theta, scaling) = parse(full)?.unwrap_or_default();
    let (local_theta, local_scaling) = parse(sliding)?.unwrap_or_default();
    if local_scaling.is_some() {
        bail!(
            "rope_parameters.{SLIDING} has a scaling, only {FULL} may have one\n\
             hint: use a checkpoint without this feature"
        );
    }
    Ok(GemmaRope {
        theta: theta.or(outer).unwrap_or(GLOBAL_THETA),
        scaling,
        local_theta: local_theta.or(outer_local).unwrap_or(LOCAL_THETA),
    })
}
