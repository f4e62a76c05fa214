//! Tests of `InternVL` against transformers, in both published layouts. The script
//! `assets/golden/make_internvl.py` generates the checkpoints and the expected values.

use acem3_experts::prompt::{PAIR_TEXTS, PromptPiece, PromptToken, StagedPrompt};
use acem3_vision::processor::ResizeSize;
use acem3_vision::{DynamicTiles, ImageProcessor, Tiles, Tiling, VisionTower};
use candle::{DType, Device, Tensor};
use serde_json::{Value, json};

use super::config::{assert_rejected, parse_config};
use super::llava_variants::{
    Values, assert_completion, image_tiles, load_image, load_values, prompt_names,
};
use super::{assert_near, golden_path, load_member, to_token_ids};
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::published::CheckpointSource;
use crate::checkpoints::store::weight_files::WeightFiles;
use crate::judging::panel::image_encoder::ImageEncoder;
use crate::support::device::Placement;

/// The largest number of tiles of the checkpoints.
const MAX_TILES: usize = 6;

/// Checks the tower's features, the image tokens and the completion of every image of a checkpoint.
/// `expected_pixels` returns the pixel values of the reference for an image, and the largest allowed
/// difference from them, in levels of a byte.
fn assert_matches_reference(
    folder: &str,
    values: &Values,
    expected_pixels: impl Fn(&str) -> (Tensor, f64),
) {
    let member = load_member(folder);
    let vision = member.vision.as_ref().unwrap();
    let tiling = Tiling::Dynamic { min_tiles: 1, max_tiles: MAX_TILES, thumbnail: true };
    assert_eq!(vision.tiling, Some(tiling));
    let vb = member.weights.builder(&Device::Cpu);
    let encoder = ImageEncoder::load(vision, &vb, &Device::Cpu).unwrap();
    let tower = vb.pp("model.vision_tower.vision_model");
    let tower = VisionTower::load(&tower, &vision.vision, vision.selection).unwrap();
    let names = prompt_names(values);
    assert_eq!(names, ["odd", "small", "tall", "wide"]);
    for name in names {
        let what = |part: &str| format!("{folder}, {name}: {part}");
        let preprocessed = encoder.prepare(&load_image(&name)).unwrap();
        let (pixel_values, levels) = expected_pixels(&name);
        assert_eq!(preprocessed.pixel_values.dims(), pixel_values.dims(), "{}", what("pixels"));
        let difference = (&preprocessed.pixel_values - &pixel_values).unwrap().abs().unwrap();
        let difference = difference.flatten_all().unwrap().max(0).unwrap();
        let difference = f64::from(difference.to_scalar::<f32>().unwrap());
        let level = 1.0 / 255.0 / vision.processor.image_std.into_iter().fold(1.0, f64::min);
        assert!(difference <= (levels + 0.01) * level, "{}: {difference}", what("pixels"));
        if let Some(expected) = values.get(&format!("{name}.tower")) {
            assert_near(&tower.forward(&pixel_values).unwrap(), expected, &what("tower"));
        }
        let tokens = encoder.project(&Tiles { pixel_values, ..preprocessed }).unwrap();
        assert_near(&tokens, &values[&format!("{name}.image_tokens")], &what("image tokens"));
        assert_completion(&member, values, &name, Some(tokens));
    }
    member.weights.check_all_used().unwrap();
}

/// Checks the tokens of a question about an image in the dialogue of a checkpoint.
fn assert_prompt(folder: &str, values: &Values) {
    let member = load_member(folder);
    let question = "\nIs there a mass, and how large is it?".to_owned();
    let pieces =
        member.chat_template.wrap(vec![PromptPiece::Image, PromptPiece::Trusted(question)]);
    let prompt = StagedPrompt::new(&pieces, PAIR_TEXTS, &member.tokenizer.text).unwrap();
    let text = |key: &str| to_token_ids(&values[key]).into_iter().map(PromptToken::Token);
    let expected: Vec<PromptToken> =
        text("head").chain([PromptToken::Image]).chain(text("tail")).collect();
    assert_eq!(prompt.tokens().collect::<Vec<_>>(), expected, "{folder}");
}

#[test]
fn transformers_layout_matches_reference() {
    let values = load_values("internvl");
    // The reference resizes with torch, whose coarser weights differ by up to two levels.
    assert_matches_reference("internvl", &values, |name| {
        (values[&format!("{name}.pixel_values")].clone(), 2.0)
    });
    assert_prompt("internvl", &values);
}

#[test]
fn own_layout_matches_reference() {
    let values = load_values("internvl-original");
    let processor = load_member("internvl-original").vision.unwrap().processor;
    let channels = |numbers: [f64; 3]| {
        let numbers = numbers.map(|number| number as f32);
        Tensor::from_slice(&numbers, (1, 3, 1, 1), &Device::Cpu).unwrap()
    };
    let (mean, std) = (channels(processor.image_mean), channels(processor.image_std));
    let normalized = |bytes: &Tensor| {
        let scaled = (bytes.to_dtype(DType::F32)? / 255.0)?.permute((0, 3, 1, 2))?;
        scaled.broadcast_sub(&mean)?.broadcast_div(&std)?.contiguous()
    };
    // The reference resizes with Pillow.
    assert_matches_reference("internvl-original", &values, |name| {
        (normalized(&values[&format!("{name}.tiles")]).unwrap(), 1.0)
    });
    assert_prompt("internvl-original", &values);
}

/// Checks the tokenizer in `vocab.json` and `merges.txt` against transformers, which adds no token.
#[test]
fn texts_are_tokenized_like_qwen2() {
    let tokenizer = load_member("internvl-original").tokenizer;
    assert!(tokenizer.file.ends_with("vocab.json"), "{}", tokenizer.file);
    let rows = std::fs::read(golden_path("checkpoints/internvl-original/texts.json")).unwrap();
    let rows: Vec<Value> = serde_json::from_slice(&rows).unwrap();
    assert!(rows.len() > 20);
    for row in rows {
        let text = row["text"].as_str().unwrap();
        let expected: Vec<u32> = serde_json::from_value(row["ids"].clone()).unwrap();
        assert_eq!(tokenizer.text.encode_trusted(text).unwrap(), expected, "{text:?}");
    }
}

/// Checks that the order of the tiles matters to the reference values, so that the other tests would
/// fail with another order.
#[test]
fn image_tokens_depend_on_the_order_of_tiles() {
    let values = load_values("internvl");
    let member = load_member("internvl");
    let vb = member.weights.builder(&Device::Cpu);
    let encoder = ImageEncoder::load(member.vision.as_ref().unwrap(), &vb, &Device::Cpu).unwrap();
    let (_, tiles) = image_tiles(&encoder, &values, "odd");
    assert_eq!((tiles.grid.rows, tiles.grid.columns), (2, 3));
    let order = Tensor::new(&[1u32, 0, 2, 3, 4, 5, 6], &Device::Cpu).unwrap();
    let swapped = tiles.pixel_values.index_select(&order, 0).unwrap();
    let swapped = encoder.project(&Tiles { pixel_values: swapped, ..tiles }).unwrap();
    let expected = &values["odd.image_tokens"];
    assert!(super::relative_difference(&swapped, expected) > 0.01);
    let tail = |tokens: &Tensor| tokens.narrow(0, 8, 20).unwrap();
    assert_near(&tail(&swapped), &tail(expected), "tokens after the first two tiles");
}

#[test]
fn tile_grids_match_reference() {
    let text = std::fs::read(golden_path("checkpoints/tile_grids.json")).unwrap();
    let file: Value = serde_json::from_slice(&text).unwrap();
    let pairs =
        |value: &Value| -> Vec<[usize; 2]> { serde_json::from_value(value.clone()).unwrap() };
    let sizes = pairs(&file["sizes"]);
    let settings = file["settings"].as_array().unwrap();
    assert!(sizes.len() > 500 && settings.len() > 4);
    for setting in settings {
        let number = |key: &str| setting[key].as_u64().unwrap() as usize;
        let side = number("side");
        let processor = ImageProcessor {
            size: ResizeSize::Exact { height: side, width: side },
            ..ImageProcessor::default()
        };
        let (min, max) = (number("min_tiles"), number("max_tiles"));
        let tiles = DynamicTiles::new(processor, min, max, true).unwrap();
        let grids = pairs(&setting["grids"]);
        assert_eq!(grids.len(), sizes.len());
        for ([width, height], [columns, rows]) in sizes.iter().zip(grids) {
            let found = tiles.grid(*height, *width);
            assert_eq!(found, (rows, columns), "{width} x {height}, {min} to {max} tiles");
        }
    }
}

/// `config.json` of `InternVL3-1B`.
const OWN_CONFIG: &str = r#"{
    "architectures": ["InternVLChatModel"], "auto_map": {"AutoConfig": "x"},
    "downsample_ratio": 0.5, "dynamic_image_size": true, "force_image_size": 448,
    "image_fold": null, "max_dynamic_patch": 12, "min_dynamic_patch": 1,
    "model_type": "internvl_chat", "output_attentions": false, "pad2square": false,
    "ps_version": "v2", "select_layer": -1, "template": "internvl2_5",
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": null,
    "use_backbone_lora": 0, "use_llm_lora": 0, "use_thumbnail": true, "system_message": null,
    "llm_config": {
        "_name_or_path": "x", "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0,
        "bos_token_id": 151643, "eos_token_id": 151643, "hidden_act": "silu",
        "hidden_size": 896, "initializer_range": 0.02, "intermediate_size": 4864,
        "max_position_embeddings": 32768, "max_window_layers": 70, "model_type": "qwen2",
        "moe_config": null, "num_attention_heads": 14, "num_hidden_layers": 24,
        "num_key_value_heads": 2, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
        "rope_scaling": {"factor": 2.0, "rope_type": "dynamic", "type": "dynamic"},
        "sliding_window": null, "torch_dtype": "bfloat16", "use_bfloat16": true,
        "use_cache": true, "use_sliding_window": false, "vocab_size": 151674},
    "vision_config": {
        "_name_or_path": "x", "architectures": ["InternVisionModel"], "auto_map": {},
        "attention_dropout": 0.0, "capacity_factor": 1.2, "drop_path_rate": 0.0, "dropout": 0.0,
        "eval_capacity_factor": 1.4, "hidden_act": "gelu", "hidden_size": 1024,
        "image_size": 448, "initializer_factor": 0.1, "initializer_range": 1e-10,
        "intermediate_size": 4096, "laux_allreduce": "all_nodes", "layer_norm_eps": 1e-6,
        "model_type": "intern_vit_6b", "moe_coeff_ratio": 0.5, "moe_intermediate_size": 768,
        "moe_output_scale": 4.0, "noisy_gate_policy": "RSample_before",
        "norm_type": "layer_norm", "num_attention_heads": 16, "num_channels": 3,
        "num_experts": 8, "num_hidden_layers": 24, "num_routed_experts": 4,
        "num_shared_experts": 4, "patch_size": 14, "qk_normalization": false, "qkv_bias": true,
        "shared_expert_intermediate_size": 3072, "torch_dtype": "bfloat16",
        "use_bfloat16": true, "use_flash_attn": true, "use_moe": false, "use_residual": true,
        "use_rts": false, "use_weighted_residual": false}
}"#;

fn own_config() -> Value {
    serde_json::from_str(OWN_CONFIG).unwrap()
}

#[test]
fn published_config_is_read_in_both_layouts() {
    let own = parse_config(&own_config()).unwrap();
    let vision = own.vision.unwrap();
    let tokens = vision.network.as_ref().unwrap().config.token_count(vision.selection);
    assert_eq!((tokens, vision.projector.token_count(tokens)), (1024, 256));
    let hub = json!({
        "architectures": ["InternVLForConditionalGeneration"], "downsample_ratio": 0.5,
        "image_seq_length": 256, "image_token_id": 151_667, "model_type": "internvl",
        "projector_hidden_act": "gelu", "torch_dtype": "bfloat16", "vision_feature_layer": -1,
        "vision_feature_select_strategy": "default", "text_config": own_config()["llm_config"],
        "vision_config": {
            "architectures": ["InternVisionModel"], "attention_bias": true,
            "attention_dropout": 0.0, "dropout": 0.0, "hidden_act": "gelu",
            "hidden_dropout_prob": 0.0, "hidden_size": 1024, "image_size": [448, 448],
            "initializer_factor": 0.1, "initializer_range": 1e-10, "intermediate_size": 4096,
            "layer_norm_eps": 1e-6, "layer_scale_init_value": 0.1, "model_type": "internvl_vision",
            "norm_type": "layer_norm", "num_attention_heads": 16, "num_channels": 3,
            "num_hidden_layers": 24, "patch_size": [14, 14], "projection_dropout": 0.0,
            "torch_dtype": "bfloat16", "use_absolute_position_embeddings": true,
            "use_mask_token": false, "use_mean_pooling": true, "use_qk_norm": false}
    });
    let hub = parse_config(&hub).unwrap();
    assert_eq!(hub.decoder, own.decoder);
    assert_eq!(hub.vision.unwrap().tiling, vision.tiling);
    let mut larger = own_config();
    larger["force_image_size"] = json!(896);
    let config = parse_config(&larger).unwrap().vision.unwrap().network.unwrap().config;
    assert_eq!((config.grid_side(), config.variant.position_grid), (64, Some(32)));
}

#[test]
fn tokenizer_without_image_tokens_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: &str, file: &str| {
        let from = golden_path("checkpoints").join(from).join(file);
        std::fs::copy(from, folder.path().join(file)).unwrap();
    };
    for file in ["config.json", "preprocessor_config.json", "model.safetensors"] {
        copy("internvl", file);
    }
    copy("llava-siglip", "tokenizer.json");
    let source = CheckpointSource::new(folder.path().to_owned());
    let mut weight_files = WeightFiles::new(&Placement::cpu(), HubDownloads::default());
    let error = source.load("conclusion", &mut weight_files).err().unwrap().to_string();
    assert!(error.contains("tokenizer.json: no special token `<img>`"), "{error}");
    copy("internvl", "tokenizer.json");
    source.load("conclusion", &mut weight_files).unwrap();
}

#[test]
fn unsupported_settings_are_rejected() {
    let changed = |pointer: &str, value: Value| {
        let mut config = own_config();
        *config.pointer_mut(pointer).unwrap() = value;
        config
    };
    let cases = [
        (changed("/ps_version", Value::Null), "ps_version is `v1`"),
        (changed("/template", json!("Hermes-2")), "template is `Hermes-2`"),
        (changed("/downsample_ratio", json!(0.4)), "downsample_ratio is 0.4"),
        (changed("/downsample_ratio", json!(0.2)), "no multiple of 5"),
        (changed("/llm_config/model_type", json!("internlm2")), "model_type `internlm2`"),
        (changed("/use_llm_lora", json!(128)), "use_llm_lora is 128"),
        (changed("/system_message", json!("Hello")), "system_message is \"Hello\""),
        (changed("/vision_config/qk_normalization", json!(true)), "qk_normalization` is true"),
        (changed("/vision_config/model_type", json!("internvl_vision")), "`vision_config."),
        (changed("/vision_config", Value::Null), "vision_config is missing"),
        (changed("/select_layer", json!([-1, -2])), "select_layer is [-1,-2]"),
    ];
    assert_rejected(&cases);
}
