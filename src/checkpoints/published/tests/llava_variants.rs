//! Tests of layouts other than LLaVA 1.5 against the reference implementations. The script
//! `assets/golden/make_checkpoint_kinds.py` generates the checkpoints and the expected values.

use std::collections::HashMap;

use acem3_experts::decoder::{Head, Trunk};
use acem3_experts::prompt::{PAIR_TEXTS, PromptPiece, PromptToken, StagedPrompt};
use acem3_vision::{DecodedImage, ImageLimits, Tiles, decode};
use candle::{Device, Tensor};

use super::{
    TEXT_AFTER_IMAGE, TEXT_BEFORE_IMAGE, assert_near, decode_greedily, golden_path, load_member,
    to_token_ids,
};
use crate::checkpoints::panel::member::Member;
use crate::judging::panel::image_encoder::ImageEncoder;

pub(super) type Values = HashMap<String, Tensor>;

pub(super) fn load_values(folder: &str) -> Values {
    let path = golden_path("checkpoints").join(folder).join("values.safetensors");
    candle::safetensors::load(path, &Device::Cpu).unwrap()
}

pub(super) fn load_image(name: &str) -> DecodedImage {
    let path = golden_path("checkpoints/images").join(format!("{name}.png"));
    decode(&std::fs::read(path).unwrap(), &ImageLimits::default()).unwrap()
}

/// Returns the names of the prompts of a folder. Each prompt is named after its image.
pub(super) fn prompt_names(values: &Values) -> Vec<String> {
    let names = values.keys().filter_map(|key| key.strip_suffix(".greedy"));
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names
}

/// Returns the decoder split after its first layer, and the embedded prompt with these image
/// tokens.
pub(super) fn embed_prompt(
    member: &Member,
    values: &Values,
    image: Option<Tensor>,
    device: &Device,
) -> (Trunk, Head, Tensor) {
    let vb = member.weights.builder(device);
    let trunk = Trunk::load(&vb, &member.decoder, 1).unwrap();
    let head = Head::load(&vb, &member.decoder, 1).unwrap();
    let text = |key: &str| match to_token_ids(&values[key]) {
        tokens if tokens.is_empty() => None,
        tokens => Some(trunk.embed(&tokens).unwrap()),
    };
    let parts: Vec<Tensor> = [text("head"), image, text("tail")].into_iter().flatten().collect();
    let prompt = Tensor::cat(&parts, 0).unwrap();
    (trunk, head, prompt)
}

/// Returns the last logits, as many as the reference stored.
pub(super) fn last_logits(logits: &Tensor, expected: &Tensor) -> Tensor {
    let last = expected.dim(0).unwrap();
    logits.narrow(0, logits.dim(0).unwrap() - last, last).unwrap()
}

/// Checks the last logits and the greedy tokens after a prompt with these image tokens.
pub(super) fn assert_completion(
    member: &Member,
    values: &Values,
    name: &str,
    image: Option<Tensor>,
) {
    let (trunk, head, prompt) = embed_prompt(member, values, image, &Device::Cpu);
    let expected_tokens = to_token_ids(&values[&format!("{name}.greedy")]);
    let (logits, generated) = decode_greedily((&trunk, &head), prompt, expected_tokens.len());
    let expected = &values[&format!("{name}.logits")];
    assert_near(&last_logits(&logits, expected), expected, &format!("{name}: logits"));
    assert_eq!(generated, expected_tokens, "{name}");
}

/// Returns the preprocessed image of a prompt, and a copy with the reference's pixels.
pub(super) fn image_tiles(encoder: &ImageEncoder, values: &Values, name: &str) -> (Tiles, Tiles) {
    let preprocessed = encoder.prepare(&load_image(name)).unwrap();
    let expected = &values[&format!("{name}.pixel_values")];
    let pixel_values = match expected.rank() {
        5 => expected.squeeze(0).unwrap(),
        _ => expected.clone(),
    };
    let expected = Tiles { pixel_values, ..preprocessed.clone() };
    (preprocessed, expected)
}

/// Checks pixels, image tokens and completion of every image against the reference. Returns the
/// numbers of image tokens.
pub(super) fn assert_images(folder: &str, values: &Values) -> HashMap<String, usize> {
    let member = load_member(folder);
    let vb = member.weights.builder(&Device::Cpu);
    let vision = member.vision.as_ref().unwrap();
    let encoder = ImageEncoder::load(vision, &vb, &Device::Cpu).unwrap();
    let mut lengths = HashMap::new();
    for name in prompt_names(values) {
        let what = |part: &str| format!("{folder}, {name}: {part}");
        let (preprocessed, tiles) = image_tiles(&encoder, values, &name);
        let (actual, expected_pixels) = (&preprocessed.pixel_values, &tiles.pixel_values);
        assert_eq!(actual.dims(), expected_pixels.dims(), "{}", what("pixels"));
        let difference = (actual - expected_pixels).unwrap().abs().unwrap();
        let difference = difference.flatten_all().unwrap().max(0).unwrap();
        let difference = f64::from(difference.to_scalar::<f32>().unwrap());
        // One grey level of 255, divided by the smallest standard deviation.
        let min_std = vision.processor.image_std.into_iter().fold(1.0, f64::min);
        assert!(difference <= 1.01 / 255.0 / min_std, "{}", what("pixels"));
        let tokens = encoder.project(&tiles).unwrap();
        assert_near(&tokens, &values[&format!("{name}.image_tokens")], &what("image tokens"));
        lengths.insert(name.clone(), tokens.dim(0).unwrap());
        assert_completion(&member, values, &name, Some(tokens));
    }
    member.weights.check_all_used().unwrap();
    lengths
}

/// Checks the tokens of a prompt with text around an image.
pub(super) fn assert_tokens(folder: &str, values: &Values) {
    let tokenizer = &load_member(folder).tokenizer.text;
    let trusted = |text: &str| PromptPiece::Trusted(text.to_owned());
    let pieces = [trusted(TEXT_BEFORE_IMAGE), PromptPiece::Image, trusted(TEXT_AFTER_IMAGE)];
    let prompt = StagedPrompt::new(&pieces, PAIR_TEXTS, tokenizer).unwrap();
    let text = |key: &str| to_token_ids(&values[key]).into_iter().map(PromptToken::Token);
    let expected_tokens: Vec<PromptToken> =
        text("head").chain([PromptToken::Image]).chain(text("tail")).collect();
    assert_eq!(prompt.tokens().collect::<Vec<_>>(), expected_tokens, "{folder}");
}

#[test]
fn llava_next_tiles_images_of_every_size() {
    let values = load_values("llava-next");
    let lengths = assert_images("llava-next", &values);
    assert_eq!(lengths.len(), 6);
    // The complete image has 3 x 3 patches. Two tiles next to each other have 3 rows of 6 patches
    // plus an end token, without the padding.
    let mut different: Vec<usize> = lengths.into_values().collect();
    different.sort_unstable();
    different.dedup();
    assert!(different.len() > 3, "{different:?}");
    assert_tokens("llava-next", &values);
}

/// Checks the same weights in the layout of LLaVA's own code, which stores the width of a
/// resolution first. If several resolutions fit a small image, both layouts choose the same.
#[test]
fn original_llava_1_6_layout_gives_same_tiles() {
    let values = load_values("llava-next");
    let vision = load_member("llava-next-original").vision.unwrap();
    assert_eq!(vision.tiling, load_member("llava-next").vision.unwrap().tiling);
    assert_images("llava-next-original", &values);
    assert_tokens("llava-next-original", &values);
}

#[test]
fn siglip_with_qwen2_matches_reference() {
    let values = load_values("llava-siglip");
    assert_images("llava-siglip", &values);
    assert_tokens("llava-siglip", &values);
}

#[test]
fn original_llava_med_layout_matches_reference() {
    let values = load_values("llava-mistral");
    assert_images("llava-mistral", &values);
    assert_tokens("llava-mistral", &values);
}

#[test]
fn text_only_mistral_and_qwen2_match_reference() {
    for folder in ["mistral", "qwen2"] {
        let (member, values) = (load_member(folder), load_values(folder));
        assert!(member.vision.is_none());
        let pieces = [PromptPiece::Trusted(format!("{TEXT_BEFORE_IMAGE}{TEXT_AFTER_IMAGE}"))];
        let prompt = StagedPrompt::new(&pieces, PAIR_TEXTS, &member.tokenizer.text).unwrap();
        let expected_tokens: Vec<PromptToken> =
            to_token_ids(&values["head"]).into_iter().map(PromptToken::Token).collect();
        assert_eq!(prompt.tokens().collect::<Vec<_>>(), expected_tokens, "{folder}");
        assert_completion(&member, &values, "text", None);
        member.weights.check_all_used().unwrap();
    }
}
