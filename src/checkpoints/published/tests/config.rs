//! Tests of `config.json` parsing: defaults, rotary scaling, and unsupported settings.

use serde_json::{Value, json};

use crate::checkpoints::published::config::CheckpointConfig;

pub(super) fn parse_config(config: &Value) -> Result<CheckpointConfig, String> {
    let map = config.as_object().unwrap().clone();
    CheckpointConfig::parse(map, &[]).map_err(|error| format!("{error:#}"))
}

#[test]
fn config_defaults_match_transformers() {
    let llama = parse_config(&json!({"model_type": "llama"})).unwrap().decoder;
    assert_eq!((llama.hidden_size, llama.intermediate_size), (4096, 11008));
    assert_eq!((llama.max_position_embeddings, llama.kv_heads()), (2048, 32));
    let mistral = parse_config(&json!({"model_type": "mistral"})).unwrap().decoder;
    assert_eq!((mistral.sliding_window, mistral.kv_heads()), (Some(4096), 8));
    let no_window = json!({"model_type": "mistral", "sliding_window": null});
    assert_eq!(parse_config(&no_window).unwrap().decoder.sliding_window, None);
    let qwen2 = parse_config(&json!({"model_type": "qwen2", "sliding_window": 7})).unwrap();
    assert_eq!(qwen2.decoder.sliding_window, None);
    assert!(qwen2.decoder.attention_bias && !qwen2.decoder.output_bias);
    let sliding = json!({"model_type": "qwen2", "sliding_window": 7, "use_sliding_window": true,
        "max_window_layers": 2});
    let sliding = parse_config(&sliding).unwrap().decoder;
    assert_eq!((sliding.window(1), sliding.window(2)), (None, Some(7)));
}

#[test]
fn both_formats_of_rope_scaling_are_read() {
    let scaling = json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192});
    let old = json!({"model_type": "llama", "rope_theta": 500_000.0, "rope_scaling": scaling});
    let mut parameters = scaling.clone();
    parameters["rope_theta"] = json!(500_000.0);
    let new = json!({"model_type": "llama", "rope_parameters": parameters});
    assert_eq!(parse_config(&old).unwrap().decoder, parse_config(&new).unwrap().decoder);
    assert!(parse_config(&old).unwrap().decoder.rope_scaling.is_some());
    let linear = json!({"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 2}});
    assert!(parse_config(&linear).unwrap().decoder.rope_scaling.is_some());
    let dynamic = json!({"model_type": "llama", "rope_scaling": {"type": "dynamic", "factor": 2}});
    assert_eq!(parse_config(&dynamic).unwrap().decoder.rope_scaling, None);
}

#[test]
fn unsupported_decoder_settings_are_rejected() {
    let cases = [
        (json!({"model_type": "gpt2"}), "`gpt2`"),
        (json!({"model_type": "llama", "hidden_act": "gelu"}), "hidden_act is `gelu`"),
        (json!({"model_type": "llama", "mlp_bias": true}), "mlp_bias"),
        (json!({"model_type": "llama", "partial_rotary_factor": 0.5}), "partial_rotary_factor"),
        (json!({"model_type": "llama", "rope_scaling": {"type": "yarn", "factor": 2}}), "`yarn`"),
        (
            json!({"model_type": "llama", "rope_scaling": {"rope_type": "dynamic"}}),
            "factor is missing",
        ),
        (json!({"model_type": "llama", "attn_logit_softcapping": 50.0}), "attn_logit_softcapping"),
        (json!({"model_type": "llama", "quantization_config": {"bits": 4}}), "quantization_config"),
        (json!({"model_type": "llama", "sliding_window": 8}), "sliding_window"),
        (json!({"model_type": "llama", "head_dim": 5}), "head size 5"),
    ];
    assert_rejected(&cases);
}

#[test]
fn decoder_of_llava_is_that_of_its_class() {
    let tower = "./vit/clip_vit_large_patch14_336";
    let huatuo = json!({"model_type": "llava_qwen2", "architectures": ["LlavaQwen2ForCausalLM"],
        "mm_vision_tower": tower, "mm_projector_type": "mlp2x_gelu", "image_aspect_ratio": "pad"});
    let huatuo = parse_config(&huatuo).unwrap();
    let qwen2 = parse_config(&json!({"model_type": "qwen2"})).unwrap();
    assert_eq!(huatuo.decoder, qwen2.decoder);
    assert_eq!(huatuo.default_chat_template, "huatuo");
    let vision = huatuo.vision.unwrap();
    assert_eq!((vision.tower_name.as_deref(), vision.pads_to_square), (Some(tower), true));
    for (class, template) in
        [("LlavaQwenForCausalLM", "chatml"), ("LlavaLlamaForCausalLM", "vicuna")]
    {
        let config =
            json!({"model_type": "llava", "architectures": [class], "mm_vision_tower": "x"});
        assert_eq!(parse_config(&config).unwrap().default_chat_template, template);
    }
    let error = parse_config(&json!({"model_type": "qwen2_5_vl"})).unwrap_err();
    assert!(error.contains("vllm serve"), "{error}");
}

#[test]
fn unsupported_vision_settings_are_rejected() {
    let cases = [
        (json!({"model_type": "llava_next", "text_config": {}}), "vision_config is missing"),
        (
            json!({"model_type": "llava_next", "text_config": {}, "vision_config": {},
                "use_image_newline_parameter": false}),
            "use_image_newline_parameter",
        ),
        (
            json!({"model_type": "llava_next", "text_config": {}, "vision_config": {},
                "vision_feature_select_strategy": "full"}),
            "expected default with a class token",
        ),
        (
            json!({"model_type": "llava_llama", "mm_vision_tower": "x", "mm_projector_type": "mlp3x_gelu"}),
            "mlp3x_gelu",
        ),
        (
            json!({"model_type": "llava_llama", "mm_vision_tower": "x", "mm_use_im_start_end": true}),
            "mm_use_im_start_end",
        ),
        (
            json!({"model_type": "llava_llama", "mm_vision_tower": "x", "image_aspect_ratio": "anyres"}),
            "mm_patch_merge_type is `flat`",
        ),
        (
            json!({"model_type": "llava_llama", "mm_vision_tower": "x", "image_aspect_ratio": "anyres_max_9"}),
            "mm_patch_merge_type is `flat`, expected spatial_unpad for image_aspect_ratio anyres_max_9",
        ),
        (
            json!({"model_type": "llava_llama", "mm_vision_tower": "x", "image_aspect_ratio": "anyres",
                "mm_patch_merge_type": "spatial_unpad", "image_grid_pinpoints": "(1x1),...,(6x6)"}),
            "image_grid_pinpoints is a range of tiles",
        ),
        (
            json!({"model_type": "llava_llama", "mm_vision_tower": "x", "mm_patch_merge_type": "spatial_unpad"}),
            "mm_patch_merge_type is \"spatial_unpad\"",
        ),
        (
            json!({"model_type": "llava", "text_config": {}, "vision_config": {"model_type": "siglip_vision_model"}}),
            "vision_feature_select_strategy is `default`, expected full",
        ),
        (
            json!({"model_type": "llava", "text_config": {}, "vision_config": {"model_type": "dinov2"}}),
            "Dinov2",
        ),
        (
            json!({"model_type": "llava", "text_config": {}, "vision_config": {"model_type": "vit"}}),
            "`vision_config.model_type` is \"vit\"",
        ),
        (
            json!({"model_type": "llava", "text_config": {}, "vision_config": {"registers": 4}}),
            "vision_config.registers is 4",
        ),
        (
            json!({"model_type": "llava", "text_config": {}, "vision_config": {}, "vision_feature_layer": [-2, -5]}),
            "vision_feature_layer",
        ),
    ];
    assert_rejected(&cases);
}

pub(super) fn assert_rejected(cases: &[(Value, &str)]) {
    for (config, part) in cases {
        let error = parse_config(config).err().unwrap_or_else(|| panic!("{config} was accepted"));
        assert!(error.contains(*part), "{config}: {error}");
    }
}
