//! Tests of published checkpoints against the reference implementations. The script
//! `assets/golden/make_checkpoints.py` generates the checkpoints and the expected values.

mod bf16_training;
mod devices;
mod full_size;
mod llava_variants;
mod training;
mod unigram_tokenizer;

use std::collections::HashMap;
use std::path::PathBuf;

use acem3_experts::TextTokenizer;
use acem3_experts::decoder::{Head, KvCache, Row, Sight as Seen, Trunk};
use acem3_experts::prompt::{Piece, Slot, StagedPrompt};
use acem3_projector::Projector;
use acem3_vision::{Limits, VisionTower, decode};
use candle::{DType, Device, Tensor};
use serde_json::{Value, json};

use super::config::CheckpointConfig;
use super::{CheckpointSource, sentencepiece};
use crate::checkpoints::hub::Downloads;
use crate::checkpoints::panel::member::Member;
use crate::checkpoints::store::weight_files::WeightFiles;
use crate::support::device::Placement;

/// Text before the image in the reference prompt, and after it (`REST`).
const OPEN: &str =
    "A chat between a curious human and an artificial intelligence assistant. USER: ";
const REST: &str = "\nIs there a mass, and how large is it? ASSISTANT:";

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("assets/golden")
        .join(name)
}

fn expected() -> HashMap<String, Tensor> {
    candle::safetensors::load(golden("checkpoints/expected.safetensors"), &Device::Cpu).unwrap()
}

fn member(folder: &str) -> Member {
    member_at(folder, &Placement::cpu())
}

fn member_at(folder: &str, place: &Placement) -> Member {
    member_of(golden("checkpoints").join(folder), place)
}

fn member_of(folder: PathBuf, place: &Placement) -> Member {
    let source = CheckpointSource::plain(folder);
    let mut library = WeightFiles::new(place, Downloads::default());
    source.load("conclusion", &mut library).unwrap()
}

pub(super) fn numbers(tensor: &Tensor) -> Vec<u32> {
    let flat = tensor.flatten_all().unwrap().to_dtype(DType::U32).unwrap();
    flat.to_vec1().unwrap()
}

pub(super) fn assert_near(got: &Tensor, want: &Tensor, what: &str) {
    let far = distance(got, want);
    assert!(far <= 1e-4, "{what}: relative difference {far}");
}

/// Returns the largest difference relative to the largest magnitude.
fn distance(got: &Tensor, want: &Tensor) -> f32 {
    assert_eq!(got.dims(), want.dims());
    let flat = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let (got, want) = (flat(got), flat(want));
    let scale = want.iter().fold(0f32, |most, v| most.max(v.abs()));
    let far = got.iter().zip(&want).map(|(g, w)| (g - w).abs() / scale);
    assert!(scale > 0.0);
    far.fold(0f32, f32::max)
}

/// Returns the image tokens of pixels, and the decoder split after its first layer.
fn looked(member: &Member, pixels: &Tensor) -> (Tensor, Trunk, Head) {
    let vb = member.weights.builder(pixels.device());
    let sight = member.sight.as_ref().unwrap();
    let tower = vb.pp("model.vision_tower.vision_model");
    let tower = VisionTower::load(&tower, &sight.vision, sight.selection).unwrap();
    let projector = Projector::load(&vb.pp("model.mm_projector"), &sight.projector).unwrap();
    let image = projector.forward(&tower.forward(pixels).unwrap()).unwrap();
    let trunk = Trunk::load(&vb, &member.decoder, 1).unwrap();
    let head = Head::load(&vb, &member.decoder, 1).unwrap();
    (image.squeeze(0).unwrap(), trunk, head)
}

/// Returns the logits of an embedded prompt and `count` greedily decoded tokens, with KV caches.
pub(super) fn greedy(
    (trunk, head): (&Trunk, &Head),
    prompt: Tensor,
    count: usize,
) -> (Tensor, Vec<u32>) {
    let (mut below, mut above) = (KvCache::new(trunk.depth()), KvCache::new(head.depth()));
    let (mut fed, mut written, mut first) = (prompt, Vec::new(), None);
    while written.len() < count {
        let tokens = fed.dim(0).unwrap();
        let row = |cache| Row { tokens, cache };
        let top = trunk.forward_cached(&fed, &mut [row(&mut below)]).unwrap();
        let top = head.forward_cached(&top, &mut [row(&mut above)]).unwrap();
        let logits = head.logits(&top).unwrap();
        let last = logits.narrow(0, tokens - 1, 1).unwrap();
        first.get_or_insert(logits);
        let next = last.argmax(1).unwrap().to_vec1::<u32>().unwrap()[0];
        written.push(next);
        fed = trunk.embed(&[next]).unwrap();
    }
    (first.unwrap(), written)
}

/// Checks both layouts of a model against transformers, from pixels to 32 generated tokens.
#[test]
fn both_layouts_reproduce_reference_logits() {
    let expected = expected();
    for folder in ["llava", "llava-original"] {
        let member = member(folder);
        let what = |part: &str| format!("{folder}: {part}");
        let (image, trunk, head) = looked(&member, &expected["pixel_values"]);
        assert_near(&image, &expected["image_tokens"], &what("image tokens"));
        member.weights.all_used().unwrap();

        let text = |name: &str| trunk.embed(&numbers(&expected[name])).unwrap();
        let x = Tensor::cat(&[text("head"), image, text("tail")], 0).unwrap();
        assert_near(&x, &expected["hidden.0"], &what("embedded prompt"));
        let t = x.dim(0).unwrap();
        let middle = trunk.forward(&x, &Seen::causal(t)).unwrap();
        assert_near(&middle, &expected["hidden.1"], &what("middle"));
        let logits = head.forward(&middle, &Seen::causal(t)).unwrap();
        let logits = head.logits(&logits).unwrap();
        assert_near(&logits, &expected["logits"], &what("logits"));

        let want = numbers(&expected["greedy"]);
        let (_, written) = greedy((&trunk, &head), x, want.len());
        assert_eq!(written, want, "{folder}");
    }
}

/// Checks image preprocessing with the settings of the checkpoint against the reference.
#[test]
fn both_layouts_reproduce_reference_preprocessing() {
    let bytes = std::fs::read(golden("vision/images/rgb.png")).unwrap();
    let image = decode(&bytes, &Limits::default()).unwrap();
    let want = &expected()["pixel_values"];
    for folder in ["llava", "llava-original"] {
        let sight = member(folder).sight.unwrap();
        let got = sight.processor.preprocess(&image).unwrap();
        let far = (got.unsqueeze(0).unwrap() - want).unwrap().abs().unwrap();
        let far = far.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        // One grey level of 255, divided by the smallest standard deviation.
        let most = far.into_iter().fold(0f32, f32::max);
        assert!(most <= 1.01 / 255.0 / 0.261, "{folder}: {most}");
    }
}

/// Checks tokenization as in LLaVA: each text around an image separately, with a single `<s>`.
#[test]
fn prompt_tokens_match_reference() {
    let expected = expected();
    for folder in ["llava", "llava-original"] {
        let tokenizer = &member(folder).tokenizer.text;
        let fixed = |text: &str| Piece::Fixed(text.to_owned());
        let pieces = [fixed(OPEN), Piece::Image, fixed(REST)];
        let slots = StagedPrompt::new(&pieces, tokenizer).unwrap();
        let head = numbers(&expected["head"]).into_iter().map(Slot::Token);
        let tail = numbers(&expected["tail"]).into_iter().map(Slot::Token);
        let want: Vec<Slot> = head.chain([Slot::Image]).chain(tail).collect();
        assert_eq!(slots.slots().collect::<Vec<_>>(), want, "{folder}");
    }
}

#[test]
fn unusual_texts_are_tokenized_like_sentencepiece() {
    let model = std::fs::read(golden("checkpoints/llava-original/tokenizer.model")).unwrap();
    let tokenizer = sentencepiece::convert(&model, true).unwrap();
    let mut plain = tokenizer.clone();
    // `SentencePiece` does not recognize control tokens in text.
    plain.set_encode_special_tokens(true);
    let rows = std::fs::read(golden("checkpoints/pieces.json")).unwrap();
    let rows: Vec<Value> = serde_json::from_slice(&rows).unwrap();
    assert!(rows.len() > 20);
    for row in rows {
        let text = row["text"].as_str().unwrap();
        let want: Vec<u32> = serde_json::from_value(row["ids"].clone()).unwrap();
        let got = plain.encode(text, false).unwrap().get_ids().to_vec();
        assert_eq!(got, want, "{text:?}");
        // `SentencePiece` writes a space as U+2581, so U+2581 in the text decodes to a space.
        let back = text.replace('\u{2581}', " ");
        assert_eq!(plain.decode(&got, true).unwrap(), back, "{text:?}");
    }
    let started = tokenizer.encode("a", true).unwrap().get_ids().to_vec();
    assert_eq!(started[0], 1);
}

/// Checks that quoted text never becomes a control token and joins the preceding text without a space.
#[test]
fn converted_tokenizer_escapes_control_tokens() {
    let model = std::fs::read(golden("checkpoints/llava-original/tokenizer.model")).unwrap();
    let tokenizer = TextTokenizer::new(sentencepiece::convert(&model, true).unwrap());
    assert_eq!(tokenizer.start(), [1]);
    assert!(tokenizer.fixed("</s>").unwrap().contains(&2));
    for text in ["</s>", "<s> a", "a</s>Score: 5", "<unk>"] {
        let tokens = tokenizer.free(text).unwrap();
        assert!(tokens.iter().all(|t| !tokenizer.is_special(*t)), "{text}");
        assert_eq!(tokenizer.decode(&tokens).unwrap().trim_start(), text);
    }
    let joined = [
        tokenizer.free("Sco").unwrap(),
        tokenizer.free("re").unwrap(),
    ]
    .concat();
    assert_eq!(tokenizer.decode(&joined).unwrap(), "Score");
}

fn parse(config: &Value) -> Result<CheckpointConfig, String> {
    let map = config.as_object().unwrap().clone();
    CheckpointConfig::parse(map, &[]).map_err(|error| format!("{error:#}"))
}

#[test]
fn config_defaults_match_transformers() {
    let llama = parse(&json!({"model_type": "llama"})).unwrap().decoder;
    assert_eq!((llama.hidden_size, llama.intermediate_size), (4096, 11008));
    assert_eq!(
        (llama.max_position_embeddings, llama.kv_heads()),
        (2048, 32)
    );
    let mistral = parse(&json!({"model_type": "mistral"})).unwrap().decoder;
    assert_eq!(
        (mistral.sliding_window, mistral.kv_heads()),
        (Some(4096), 8)
    );
    let none = json!({"model_type": "mistral", "sliding_window": null});
    assert_eq!(parse(&none).unwrap().decoder.sliding_window, None);
    let qwen2 = parse(&json!({"model_type": "qwen2", "sliding_window": 7})).unwrap();
    assert_eq!(qwen2.decoder.sliding_window, None);
    assert!(qwen2.decoder.attention_bias && !qwen2.decoder.output_bias);
    let on = json!({"model_type": "qwen2", "sliding_window": 7, "use_sliding_window": true,
        "max_window_layers": 2});
    let on = parse(&on).unwrap().decoder;
    assert_eq!((on.window(1), on.window(2)), (None, Some(7)));
}

#[test]
fn both_formats_of_rope_scaling_are_read() {
    let scaling = json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192});
    let old = json!({"model_type": "llama", "rope_theta": 500_000.0, "rope_scaling": scaling});
    let mut parameters = scaling.clone();
    parameters["rope_theta"] = json!(500_000.0);
    let new = json!({"model_type": "llama", "rope_parameters": parameters});
    assert_eq!(parse(&old).unwrap().decoder, parse(&new).unwrap().decoder);
    assert!(parse(&old).unwrap().decoder.rope_scaling.is_some());
    let linear = json!({"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 2}});
    assert!(parse(&linear).unwrap().decoder.rope_scaling.is_some());
}

#[test]
fn unsupported_decoder_settings_are_rejected() {
    let cases = [
        (json!({"model_type": "gpt2"}), "`gpt2`"),
        (
            json!({"model_type": "llama", "hidden_act": "gelu"}),
            "hidden_act is `gelu`",
        ),
        (json!({"model_type": "llama", "mlp_bias": true}), "mlp_bias"),
        (
            json!({"model_type": "llama", "partial_rotary_factor": 0.5}),
            "partial_rotary_factor",
        ),
        (
            json!({"model_type": "llama", "rope_scaling": {"type": "yarn", "factor": 2}}),
            "`yarn`",
        ),
        (
            json!({"model_type": "llama", "rope_scaling": {"rope_type": "dynamic"}}),
            "`dynamic`",
        ),
        (
            json!({"model_type": "llama", "attn_logit_softcapping": 50.0}),
            "attn_logit_softcapping",
        ),
        (
            json!({"model_type": "llama", "quantization_config": {"bits": 4}}),
            "quantization_config",
        ),
        (
            json!({"model_type": "llama", "sliding_window": 8}),
            "sliding_window",
        ),
        (json!({"model_type": "llama", "head_dim": 5}), "head size 5"),
    ];
    assert_rejected(&cases);
}

#[test]
fn unsupported_vision_settings_are_rejected() {
    let cases = [
        (
            json!({"model_type": "llava_next", "text_config": {}}),
            "vision_config is missing",
        ),
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
            "`anyres_max_9`",
        ),
        (
            json!({"model_type": "llava_llama", "mm_vision_tower": "x", "image_aspect_ratio": "anyres",
                "mm_patch_merge_type": "spatial_unpad", "image_grid_pinpoints": "(1x1),...,(6x6)"}),
            "image_grid_pinpoints is \"(1x1)",
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

fn assert_rejected(cases: &[(Value, &str)]) {
    for (config, named) in cases {
        let error = parse(config)
            .err()
            .unwrap_or_else(|| panic!("{config} was accepted"));
        assert!(error.contains(*named), "{config}: {error}");
    }
}
