//! Tests of published checkpoints against the reference implementations. The script
//! `assets/golden/make_checkpoints.py` generates the checkpoints and the expected values.

mod adapters;
mod bf16_training;
mod config;
mod devices;
mod free_answers;
mod full_size;
mod gemma;
mod internvl;
mod llava_variants;
mod onevision;
mod tile_training;
mod training;
mod unigram_tokenizer;

use std::collections::HashMap;
use std::path::PathBuf;

use acem3_experts::TextTokenizer;
use acem3_experts::decoder::{BatchLayout, CachedSequence, Head, KvCache, Trunk};
use acem3_experts::prompt::{PAIR_TEXTS, PromptPiece, PromptToken, StagedPrompt};
use acem3_projector::Projector;
use acem3_vision::{ImageLimits, VisionTower, decode};
use candle::{DType, Device, Tensor};
use serde_json::Value;

use super::{CheckpointSource, sentencepiece};
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::member::Member;
use crate::checkpoints::store::weight_files::WeightFiles;
use crate::support::device::Placement;

/// Text before the image in the reference prompt.
const TEXT_BEFORE_IMAGE: &str =
    "A chat between a curious human and an artificial intelligence assistant. USER: ";
/// Text after the image in the reference prompt.
const TEXT_AFTER_IMAGE: &str = "\nIs there a mass, and how large is it? ASSISTANT:";

fn golden_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("assets/golden").join(name)
}

fn expected_values() -> HashMap<String, Tensor> {
    candle::safetensors::load(golden_path("checkpoints/expected.safetensors"), &Device::Cpu)
        .unwrap()
}

fn load_member(folder: &str) -> Member {
    load_member_on(folder, &Placement::cpu())
}

fn load_member_on(folder: &str, placement: &Placement) -> Member {
    load_member_from(golden_path("checkpoints").join(folder), placement)
}

fn load_member_from(folder: PathBuf, placement: &Placement) -> Member {
    let source = CheckpointSource::new(folder);
    let mut weight_files = WeightFiles::new(placement, HubDownloads::default());
    source.load("conclusion", &mut weight_files).unwrap()
}

pub(super) fn to_token_ids(tensor: &Tensor) -> Vec<u32> {
    let flat = tensor.flatten_all().unwrap().to_dtype(DType::U32).unwrap();
    flat.to_vec1().unwrap()
}

pub(super) fn assert_near(actual: &Tensor, expected: &Tensor, what: &str) {
    let difference = relative_difference(actual, expected);
    assert!(difference <= 1e-4, "{what}: relative difference {difference}");
}

/// Returns the largest difference relative to the largest magnitude.
pub(super) fn relative_difference(actual: &Tensor, expected: &Tensor) -> f32 {
    assert_eq!(actual.dims(), expected.dims());
    let flat = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let (actual, expected) = (flat(actual), flat(expected));
    let scale = expected.iter().fold(0f32, |max, v| max.max(v.abs()));
    let differences = actual.iter().zip(&expected).map(|(a, e)| (a - e).abs() / scale);
    assert!(scale > 0.0);
    differences.fold(0f32, f32::max)
}

/// Encodes pixels to the tokens of all encoder inputs, and loads the decoder, split after its first layer.
fn encode_image_and_load_decoder(member: &Member, pixels: &Tensor) -> (Tensor, Trunk, Head) {
    let vb = member.weights.builder(pixels.device());
    let vision = member.vision.as_ref().unwrap();
    let tower = vb.pp("model.vision_tower.vision_model");
    let tower = VisionTower::load(&tower, &vision.vision, vision.selection).unwrap();
    let projector = Projector::load(&vb.pp("model.mm_projector"), &vision.projector).unwrap();
    let image = projector.forward(&tower.forward(pixels).unwrap()).unwrap();
    let trunk = Trunk::load(&vb, &member.decoder, 1).unwrap();
    let head = Head::load(&vb, &member.decoder, 1).unwrap();
    (image.flatten_to(1).unwrap(), trunk, head)
}

/// Returns the logits of an embedded prompt and `count` greedily decoded tokens, with KV caches.
pub(super) fn decode_greedily(
    (trunk, head): (&Trunk, &Head),
    prompt: Tensor,
    count: usize,
) -> (Tensor, Vec<u32>) {
    let (mut trunk_cache, mut head_cache) =
        (KvCache::new(trunk.depth()), KvCache::new(head.depth()));
    let (mut input, mut generated, mut first) = (prompt, Vec::new(), None);
    while generated.len() < count {
        let tokens = input.dim(0).unwrap();
        let sequence = |cache| CachedSequence::causal(tokens, cache);
        let hidden = trunk.forward_cached(&input, &mut [sequence(&mut trunk_cache)]).unwrap();
        let hidden = head.forward_cached(&hidden, &mut [sequence(&mut head_cache)]).unwrap();
        let logits = head.logits(&hidden).unwrap();
        let last = logits.narrow(0, tokens - 1, 1).unwrap();
        first.get_or_insert(logits);
        let next = last.argmax(1).unwrap().to_vec1::<u32>().unwrap()[0];
        generated.push(next);
        input = trunk.embed(&[next]).unwrap();
    }
    (first.unwrap(), generated)
}

/// Checks both layouts of a model against transformers, from pixels to 32 generated tokens.
#[test]
fn both_layouts_reproduce_reference_logits() {
    let expected = expected_values();
    for folder in ["llava", "llava-original"] {
        let member = load_member(folder);
        let what = |part: &str| format!("{folder}: {part}");
        let (image, trunk, head) =
            encode_image_and_load_decoder(&member, &expected["pixel_values"]);
        assert_near(&image, &expected["image_tokens"], &what("image tokens"));
        member.weights.check_all_used().unwrap();

        let text = |name: &str| trunk.embed(&to_token_ids(&expected[name])).unwrap();
        let x = Tensor::cat(&[text("head"), image, text("tail")], 0).unwrap();
        assert_near(&x, &expected["hidden.0"], &what("embedded prompt"));
        let t = x.dim(0).unwrap();
        let middle = trunk.forward(&x, &BatchLayout::causal(t)).unwrap();
        assert_near(&middle, &expected["hidden.1"], &what("middle"));
        let logits = head.forward(&middle, &BatchLayout::causal(t)).unwrap();
        let logits = head.logits(&logits).unwrap();
        assert_near(&logits, &expected["logits"], &what("logits"));

        let expected_tokens = to_token_ids(&expected["greedy"]);
        let (_, generated) = decode_greedily((&trunk, &head), x, expected_tokens.len());
        assert_eq!(generated, expected_tokens, "{folder}");
    }
}

/// Checks image preprocessing with the settings of the checkpoint against the reference.
#[test]
fn both_layouts_reproduce_reference_preprocessing() {
    let bytes = std::fs::read(golden_path("vision/images/rgb.png")).unwrap();
    let image = decode(&bytes, &ImageLimits::default()).unwrap();
    let expected_pixels = &expected_values()["pixel_values"];
    for folder in ["llava", "llava-original"] {
        let vision = load_member(folder).vision.unwrap();
        let actual = vision.processor.preprocess(&image).unwrap();
        let differences = (actual.unsqueeze(0).unwrap() - expected_pixels).unwrap().abs().unwrap();
        let differences = differences.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        // One grey level of 255, divided by the smallest standard deviation.
        let max_difference = differences.into_iter().fold(0f32, f32::max);
        assert!(max_difference <= 1.01 / 255.0 / 0.261, "{folder}: {max_difference}");
    }
}

/// Checks tokenization as in LLaVA: each text around an image separately, with a single `<s>`.
#[test]
fn prompt_tokens_match_reference() {
    let expected = expected_values();
    for folder in ["llava", "llava-original"] {
        let tokenizer = &load_member(folder).tokenizer.text;
        let trusted = |text: &str| PromptPiece::Trusted(text.to_owned());
        let pieces = [trusted(TEXT_BEFORE_IMAGE), PromptPiece::Image, trusted(TEXT_AFTER_IMAGE)];
        let prompt = StagedPrompt::new(&pieces, PAIR_TEXTS, tokenizer).unwrap();
        let head = to_token_ids(&expected["head"]).into_iter().map(PromptToken::Token);
        let tail = to_token_ids(&expected["tail"]).into_iter().map(PromptToken::Token);
        let expected_tokens: Vec<PromptToken> =
            head.chain([PromptToken::Image]).chain(tail).collect();
        assert_eq!(prompt.tokens().collect::<Vec<_>>(), expected_tokens, "{folder}");
    }
}

#[test]
fn unusual_texts_are_tokenized_like_sentencepiece() {
    let model = std::fs::read(golden_path("checkpoints/llava-original/tokenizer.model")).unwrap();
    let tokenizer = sentencepiece::convert(&model, true).unwrap();
    let mut plain = tokenizer.clone();
    // `SentencePiece` does not recognize control tokens in text.
    plain.set_encode_special_tokens(true);
    let rows = std::fs::read(golden_path("checkpoints/pieces.json")).unwrap();
    let rows: Vec<Value> = serde_json::from_slice(&rows).unwrap();
    assert!(rows.len() > 20);
    for row in rows {
        let text = row["text"].as_str().unwrap();
        let expected_ids: Vec<u32> = serde_json::from_value(row["ids"].clone()).unwrap();
        let ids = plain.encode(text, false).unwrap().get_ids().to_vec();
        assert_eq!(ids, expected_ids, "{text:?}");
        // `SentencePiece` writes a space as U+2581, so U+2581 in the text decodes to a space.
        let decoded = text.replace('\u{2581}', " ");
        assert_eq!(plain.decode(&ids, true).unwrap(), decoded, "{text:?}");
    }
    let ids = tokenizer.encode("a", true).unwrap().get_ids().to_vec();
    assert_eq!(ids[0], 1);
}

/// Checks that quoted text never becomes a control token and joins the preceding text without a
/// space.
#[test]
fn converted_tokenizer_escapes_control_tokens() {
    let model = std::fs::read(golden_path("checkpoints/llava-original/tokenizer.model")).unwrap();
    let tokenizer = TextTokenizer::new(sentencepiece::convert(&model, true).unwrap());
    assert_eq!(tokenizer.bos_tokens(), [1]);
    assert!(tokenizer.encode_trusted("</s>").unwrap().contains(&2));
    for text in ["</s>", "<s> a", "a</s>Score: 5", "<unk>"] {
        let tokens = tokenizer.encode_quoted(text).unwrap();
        assert!(tokens.iter().all(|t| !tokenizer.is_special(*t)), "{text}");
        assert_eq!(tokenizer.decode(&tokens).unwrap().trim_start(), text);
    }
    let joined =
        [tokenizer.encode_quoted("Sco").unwrap(), tokenizer.encode_quoted("re").unwrap()].concat();
    assert_eq!(tokenizer.decode(&joined).unwrap(), "Score");
}
