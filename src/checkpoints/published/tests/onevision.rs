//! Tests of LLaVA-OneVision, LLaVA-Critic, HuatuoGPT-Vision and Prometheus-Vision against the
//! reference implementations. The script `assets/golden/make_onevision.py` generates the checkpoints
//! and the expected values.

use std::collections::HashMap;

use acem3_projector::limited_size;
use acem3_vision::processor::ResizeSize;
use acem3_vision::{AnyRes, ImageProcessor, RegionRounding, Resolutions, TileGrid, Tiling};
use serde_json::{Value, json};

use super::config::parse_config;
use super::llava_variants::{assert_images, assert_tokens, load_values};
use super::{golden_path, load_member};

#[test]
fn onevision_encodes_images_of_every_size_like_transformers() {
    let values = load_values("llava-onevision");
    let lengths = assert_images("llava-onevision", &values);
    // A single tile of 3 x 3 tokens, with the end of each row.
    assert_eq!(lengths["small"], 9 + 3 * 4);
    // 5 x 5 tiles shrink to 8 x 8 tokens.
    assert_eq!(lengths["square"], 9 + 8 * 9);
    assert_tokens("llava-onevision", &values);
}

#[test]
fn original_layout_of_onevision_gives_same_tokens() {
    let values = load_values("llava-onevision");
    let member = load_member("llava-critic");
    assert_eq!(member.chat_template, load_member("llava-onevision").chat_template);
    let vision = member.vision.unwrap();
    let Some(Tiling::AnyResMax(settings)) = vision.tiling else {
        panic!("{:?}", vision.tiling);
    };
    assert_eq!(settings.rounding, RegionRounding::Down);
    assert_images("llava-critic", &values);
    assert_tokens("llava-critic", &values);
}

/// Checks the tower in the shards, which replaces the one in the folder `vit`.
#[test]
fn huatuo_matches_transformers() {
    let values = load_values("huatuo");
    assert_images("huatuo", &values);
    assert_tokens("huatuo", &values);
    let template = load_member("huatuo").chat_template;
    assert_eq!(
        (template.open.as_str(), template.close.as_str()),
        ("<|user|>\n", "\n<|assistant|>\n")
    );
}

#[test]
fn prometheus_vision_matches_transformers() {
    let values = load_values("prometheus");
    assert_images("prometheus", &values);
    assert_tokens("prometheus", &values);
    assert!(load_member("prometheus").chat_template.close.contains("ASSISTANT:"));
}

/// Checks a LLaVA 1.5 with merged adapters, as the scripts of LLaVA save it: the weights of
/// `prometheus` in safetensors, with the tower, under the newer `model_type`.
#[test]
fn llava_with_merged_adapters_matches_transformers() {
    let published = golden_path("checkpoints/prometheus");
    let folder = tempfile::tempdir().unwrap();
    let mut tensors = HashMap::new();
    for shard in 1..=2 {
        let path = published.join(format!("pytorch_model-{shard:05}-of-00002.bin"));
        tensors.extend(candle::pickle::read_all(path).unwrap());
    }
    candle::safetensors::save(&tensors, folder.path().join("model.safetensors")).unwrap();
    std::fs::copy(published.join("tokenizer.model"), folder.path().join("tokenizer.model"))
        .unwrap();
    let config = std::fs::read(published.join("config.json")).unwrap();
    let mut config: Value = serde_json::from_slice(&config).unwrap();
    for (name, value) in [
        ("model_type", json!("llava_llama")),
        (
            "mm_vision_tower",
            json!(golden_path("checkpoints/huatuo/vit/clip_vit_large_patch14_336")),
        ),
        ("attention_bias", json!(false)),
        ("mm_patch_merge_type", json!("flat")),
        ("mm_projector_lr", json!(2e-5)),
        ("image_crop_resolution", json!(224)),
    ] {
        config[name] = value;
    }
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    assert_images(folder.path().to_str().unwrap(), &load_values("prometheus"));
}

/// Checks resolution and number of image tokens of the published model for hundreds of image sizes.
#[test]
fn resolutions_and_token_counts_match_reference() {
    const SIDE: usize = 384;
    const TOKENS: usize = 27;
    let file = std::fs::read(golden_path("checkpoints/onevision_sizes.json")).unwrap();
    let rows: Vec<[usize; 6]> = serde_json::from_slice(&file).unwrap();
    let processor = ImageProcessor {
        size: ResizeSize::Exact { height: SIDE, width: SIDE },
        ..ImageProcessor::default()
    };
    let sizes = (1..=6).flat_map(|h| (1..=6).map(move |w| [h, w])).collect();
    let any_res = AnyRes::new(processor, Resolutions::Tiles(sizes).in_pixels(SIDE)).unwrap();
    let (mut shrunk, mut different) = (0, 0);
    for [height, width, best_height, best_width, tokens, original_tokens] in &rows {
        let best = any_res.best_resolution(*height, *width);
        assert_eq!(best, (*best_height, *best_width), "{height} x {width}");
        let (rows, columns) = (best.0 / SIDE, best.1 / SIDE);
        let image_size = (*height, *width);
        let grid = TileGrid { inputs: 1 + rows * columns, rows, columns, image_size };
        let mut count = |rounding| {
            let (rows, columns) = grid.content_region(TOKENS, rounding);
            let size = limited_size((rows.len(), columns.len()), 9, TOKENS);
            shrunk += usize::from(size != (rows.len(), columns.len()));
            TOKENS * TOKENS + size.0 * (size.1 + 1)
        };
        assert_eq!(count(RegionRounding::Decimals), *tokens, "{height} x {width}");
        assert_eq!(count(RegionRounding::Down), *original_tokens, "{height} x {width}");
        different += usize::from(tokens != original_tokens);
    }
    assert!(rows.len() > 400 && shrunk > 20 && different > 4, "{shrunk}, {different}");
}

#[test]
fn defaults_of_onevision_match_transformers() {
    let tower = json!({"image_size": 384, "patch_size": 14});
    let config =
        json!({"model_type": "llava_onevision", "text_config": {}, "vision_config": tower});
    let config = parse_config(&config).unwrap();
    assert!(config.decoder.attention_bias);
    let vision = config.vision.unwrap();
    assert_eq!(vision.selection.select_layer, -1);
    let Some(Tiling::AnyResMax(settings)) = vision.tiling else {
        panic!("{:?}", vision.tiling);
    };
    let pinpoints = settings.resolutions.in_pixels(384);
    assert_eq!((settings.max_tiles, pinpoints.len(), pinpoints[1]), (9, 36, [384, 768]));
}

#[test]
fn dialogue_of_huatuo_is_that_of_its_tower() {
    for (model_type, tower, template) in [
        ("llava_llama", "./vit/clip_vit_large_patch14_336", "huatuo"),
        ("llava_llama", "openai/clip-vit-large-patch14-336", "vicuna"),
        ("llava_qwen", "google/siglip-so400m-patch14-384", "chatml"),
    ] {
        let config = json!({"model_type": model_type, "mm_vision_tower": tower});
        assert_eq!(parse_config(&config).unwrap().default_chat_template, template);
    }
}

#[test]
fn unsupported_tiling_of_onevision_is_rejected() {
    let original = |aspect: &str, pinpoints: &str| {
        json!({"model_type": "llava_qwen", "mm_vision_tower": "x", "image_aspect_ratio": aspect,
            "mm_patch_merge_type": "spatial_unpad", "image_grid_pinpoints": pinpoints})
    };
    let published = |name: &str, value: &str| {
        let mut config = json!({"model_type": "llava_onevision", "text_config": {}});
        config["vision_config"] = json!({"model_type": "siglip_vision_model"});
        config[name] = value.into();
        config
    };
    for (config, part) in [
        (original("anyres_max_0", "(1x1)"), "anyres_max_ and a number"),
        (original("highres", "(1x1)"), "mm_patch_merge_type is"),
        (original("anyres", "(1x1),...,(6x6)"), "list widths and heights in pixels"),
        (original("anyres_max_9", "(1x1),...,(6xa)"), "image_grid_pinpoints"),
        (published("vision_aspect_ratio", "pad"), "only anyres_max_N is supported"),
        (published("vision_feature_select_strategy", "default"), "expected full"),
    ] {
        let error = parse_config(&config).unwrap_err();
        assert!(error.contains(part), "{config}: {error}");
    }
}
