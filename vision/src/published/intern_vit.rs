//! `InternViT` in the configurations of `InternVL`: the variants that this crate supports
//! (`configuration_internvl.py` of `transformers`, `configuration_intern_vit.py` of `InternVL`'s own
//! code).

use acem3_kernels::Activation;
use serde_json::{Value, json};

use super::error::PublishedError;
use super::json_section::JsonSection;
use super::layout::EncoderLayout;
use crate::config::{VisionConfig, VitVariant};

/// Fields that [`check_fields`] reads, and fields that do not affect the features: settings of
/// training, of the implementation, and of a mixture of experts that `use_moe` enables.
const KNOWN_FIELDS: [&str; 29] = [
    "attention_bias",
    "auto_map",
    "capacity_factor",
    "drop_path_rate",
    "eval_capacity_factor",
    "hidden_dropout_prob",
    "laux_allreduce",
    "layer_scale_init_value",
    "moe_coeff_ratio",
    "moe_intermediate_size",
    "moe_output_scale",
    "noisy_gate_policy",
    "norm_type",
    "num_experts",
    "num_routed_experts",
    "num_shared_experts",
    "projection_dropout",
    "qk_normalization",
    "qkv_bias",
    "shared_expert_intermediate_size",
    "use_absolute_position_embeddings",
    "use_flash_attn",
    "use_mask_token",
    "use_mean_pooling",
    "use_moe",
    "use_qk_norm",
    "use_residual",
    "use_rts",
    "use_weighted_residual",
];

/// Returns true if a field is read here or does not affect the features.
pub(super) fn is_known_field(field: &str) -> bool {
    KNOWN_FIELDS.contains(&field)
}

/// Returns the values of missing fields.
pub(super) fn default_config(layout: EncoderLayout) -> VisionConfig {
    let base = VisionConfig {
        hidden_size: 1024,
        intermediate_size: 4096,
        num_hidden_layers: 24,
        num_attention_heads: 16,
        image_size: 448,
        patch_size: 14,
        num_channels: 3,
        layer_norm_eps: 1e-6,
        hidden_act: Activation::Gelu,
        variant: VitVariant::intern_vit(),
    };
    match layout {
        EncoderLayout::InternVlChat => VisionConfig {
            hidden_size: 3200,
            intermediate_size: 12_800,
            num_hidden_layers: 48,
            num_attention_heads: 25,
            image_size: 224,
            variant: VitVariant { fused_qkv: true, ..VitVariant::intern_vit() },
            ..base
        },
        _ => base,
    }
}

/// Checks that a section describes a supported variant: layer norms, and biases of queries, keys and
/// values without norms. `InternViT-6B` has root mean square norms and no such biases.
pub(super) fn check_fields(
    section: &JsonSection<'_>,
    layout: EncoderLayout,
) -> Result<(), PublishedError> {
    // Value of a missing field, then the supported value.
    let settings: &[(&str, Value, Value)] = match layout {
        EncoderLayout::InternVlChat => &[
            ("qkv_bias", json!(false), json!(true)),
            ("qk_normalization", json!(true), json!(false)),
            ("norm_type", json!("rms_norm"), json!("layer_norm")),
            ("use_moe", json!(false), json!(false)),
        ],
        _ => &[
            ("attention_bias", json!(false), json!(true)),
            ("use_qk_norm", json!(false), json!(false)),
            ("norm_type", json!("layer_norm"), json!("layer_norm")),
            ("use_absolute_position_embeddings", json!(true), json!(true)),
            ("use_mean_pooling", json!(true), json!(true)),
        ],
    };
    for (field, default, supported) in settings {
        let found = section.value(field).unwrap_or(default);
        if found != supported {
            let problem = format!("is {found}, only {supported} is supported");
            return Err(section.field_error(field, problem));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::EncoderNetwork;

    #[test]
    fn variants_of_intern_vit_6b_are_rejected() {
        let own = json!({"model_type": "intern_vit_6b", "qkv_bias": true, "hidden_size": 1024,
            "qk_normalization": false, "norm_type": "layer_norm", "num_attention_heads": 16});
        let network = EncoderNetwork::from_vision_config(&own).unwrap();
        assert_eq!(network.layout, EncoderLayout::InternVlChat);
        assert!(network.config.variant.fused_qkv && !network.config.variant.post_norm);
        let hub = json!({"model_type": "internvl_vision", "attention_bias": true,
            "image_size": [448, 448], "patch_size": [14, 14]});
        let network = EncoderNetwork::from_vision_config(&hub).unwrap();
        assert_eq!((network.config.grid_side(), network.config.hidden_size), (32, 1024));
        for (config, field, value) in [
            (&own, "qkv_bias", Value::Null),
            (&own, "qk_normalization", json!(true)),
            (&own, "norm_type", Value::Null),
            (&own, "use_moe", json!(true)),
            (&hub, "attention_bias", Value::Null),
            (&hub, "use_qk_norm", json!(true)),
            (&hub, "norm_type", json!("rms_norm")),
            (&hub, "use_mean_pooling", json!(false)),
        ] {
            let mut config = config.clone();
            config[field] = value;
            let error = EncoderNetwork::from_vision_config(&config).unwrap_err().to_string();
            assert!(error.contains(&format!("`vision_config.{field}` is ")), "{error}");
        }
    }
}
