//! Tests of layouts other than LLaVA 1.5 against the reference implementations. The script
//! `assets/golden/make_checkpoint_kinds.py` generates the checkpoints and the expected values.

use std::collections::HashMap;

use acem3_experts::decoder::{Head, Trunk};
use acem3_experts::prompt::{Piece, Slot, StagedPrompt};
use acem3_vision::{DecodedImage, Limits, Tiles, decode};
use candle::{Device, Tensor};

use super::{OPEN, REST, assert_near, golden, greedy, member, numbers};
use crate::checkpoints::panel::member::Member;
use crate::judging::panel::image_encoder::ImageEncoder;

pub(super) type Values = HashMap<String, Tensor>;

pub(super) fn values(folder: &str) -> Values {
    let path = golden("checkpoints")
        .join(folder)
        .join("values.safetensors");
    candle::safetensors::load(path, &Device::Cpu).unwrap()
}

fn image(name: &str) -> DecodedImage {
    let path = golden("checkpoints/images").join(format!("{name}.png"));
    decode(&std::fs::read(path).unwrap(), &Limits::default()).unwrap()
}

/// Returns the names of the prompts of a folder: those of their images.
pub(super) fn prompts(values: &Values) -> Vec<String> {
    let names = values.keys().filter_map(|key| key.strip_suffix(".greedy"));
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names
}

/// Returns the decoder split after its first layer, and the embedded prompt with these image tokens.
pub(super) fn prompt(
    member: &Member,
    values: &Values,
    image: Option<Tensor>,
    device: &Device,
) -> (Trunk, Head, Tensor) {
    let vb = member.weights.builder(device);
    let trunk = Trunk::load(&vb, &member.decoder, 1).unwrap();
    let head = Head::load(&vb, &member.decoder, 1).unwrap();
    let text = |key: &str| match numbers(&values[key]) {
        tokens if tokens.is_empty() => None,
        tokens => Some(trunk.embed(&tokens).unwrap()),
    };
    let parts: Vec<Tensor> = [text("head"), image, text("tail")]
        .into_iter()
        .flatten()
        .collect();
    let prompt = Tensor::cat(&parts, 0).unwrap();
    (trunk, head, prompt)
}

/// Returns the last logits, as many as the reference stored.
pub(super) fn last(logits: &Tensor, expected: &Tensor) -> Tensor {
    let last = expected.dim(0).unwrap();
    logits
        .narrow(0, logits.dim(0).unwrap() - last, last)
        .unwrap()
}

/// Checks the last logits and the greedy tokens after a prompt with these image tokens.
fn assert_completion(member: &Member, values: &Values, name: &str, image: Option<Tensor>) {
    let (trunk, head, prompt) = prompt(member, values, image, &Device::Cpu);
    let want = numbers(&values[&format!("{name}.greedy")]);
    let (logits, written) = greedy((&trunk, &head), prompt, want.len());
    let expected = &values[&format!("{name}.logits")];
    assert_near(
        &last(&logits, expected),
        expected,
        &format!("{name}: logits"),
    );
    assert_eq!(written, want, "{name}");
}

/// Returns the preprocessed image of a prompt, and a copy with the reference's pixels.
pub(super) fn tiles(encoder: &ImageEncoder, values: &Values, name: &str) -> (Tiles, Tiles) {
    let prepared = encoder.prepare(&image(name)).unwrap();
    let expected = &values[&format!("{name}.pixel_values")];
    let pixel_values = match expected.rank() {
        5 => expected.squeeze(0).unwrap(),
        _ => expected.clone(),
    };
    let expected = Tiles {
        pixel_values,
        ..prepared.clone()
    };
    (prepared, expected)
}

/// Checks pixels, image tokens and completion of every image against the reference. Returns the numbers of
/// image tokens.
fn assert_images(folder: &str, values: &Values) -> HashMap<String, usize> {
    let member = member(folder);
    let vb = member.weights.builder(&Device::Cpu);
    let sight = member.sight.as_ref().unwrap();
    let encoder = ImageEncoder::load(sight, &vb, &Device::Cpu).unwrap();
    let mut lengths = HashMap::new();
    for name in prompts(values) {
        let what = |part: &str| format!("{folder}, {name}: {part}");
        let (prepared, tiles) = tiles(&encoder, values, &name);
        let (got, want) = (&prepared.pixel_values, &tiles.pixel_values);
        assert_eq!(got.dims(), want.dims(), "{}", what("pixels"));
        let far = (got - want).unwrap().abs().unwrap();
        let far = far.flatten_all().unwrap().max(0).unwrap();
        let far = f64::from(far.to_scalar::<f32>().unwrap());
        // One grey level of 255, divided by the smallest standard deviation.
        let least = sight.processor.image_std.into_iter().fold(1.0, f64::min);
        assert!(far <= 1.01 / 255.0 / least, "{}", what("pixels"));
        let tokens = encoder.tokens(&tiles).unwrap();
        assert_near(
            &tokens,
            &values[&format!("{name}.image_tokens")],
            &what("image tokens"),
        );
        lengths.insert(name.clone(), tokens.dim(0).unwrap());
        assert_completion(&member, values, &name, Some(tokens));
    }
    member.weights.all_used().unwrap();
    lengths
}

/// Checks the tokens of a prompt with text around an image.
fn assert_tokens(folder: &str, values: &Values) {
    let tokenizer = &member(folder).tokenizer.text;
    let fixed = |text: &str| Piece::Fixed(text.to_owned());
    let pieces = [fixed(OPEN), Piece::Image, fixed(REST)];
    let slots = StagedPrompt::new(&pieces, tokenizer).unwrap();
    let text = |key: &str| numbers(&values[key]).into_iter().map(Slot::Token);
    let want: Vec<Slot> = text("head")
        .chain([Slot::Image])
        .chain(text("tail"))
        .collect();
    assert_eq!(slots.slots().collect::<Vec<_>>(), want, "{folder}");
}

#[test]
fn llava_next_tiles_images_of_every_size() {
    let values = values("llava-next");
    let lengths = assert_images("llava-next", &values);
    assert_eq!(lengths.len(), 6);
    // The complete image has 3 x 3 patches. Two tiles next to each other have 3 rows of 6 patches plus an end
    // token, without the padding.
    let mut different: Vec<usize> = lengths.into_values().collect();
    different.sort_unstable();
    different.dedup();
    assert!(different.len() > 3, "{different:?}");
    assert_tokens("llava-next", &values);
}

/// Checks the same weights in the layout of LLaVA's own code, which stores the width of a resolution first. If
/// several resolutions fit a small image, both layouts choose the same.
#[test]
fn original_llava_1_6_layout_gives_same_tiles() {
    let values = values("llava-next");
    let sight = member("llava-next-original").sight.unwrap();
    assert_eq!(
        sight.pinpoints,
        member("llava-next").sight.unwrap().pinpoints
    );
    assert_images("llava-next-original", &values);
    assert_tokens("llava-next-original", &values);
}

#[test]
fn siglip_with_qwen2_matches_reference() {
    let values = values("llava-siglip");
    assert_images("llava-siglip", &values);
    assert_tokens("llava-siglip", &values);
}

#[test]
fn original_llava_med_layout_matches_reference() {
    let values = values("llava-mistral");
    assert_images("llava-mistral", &values);
    assert_tokens("llava-mistral", &values);
}

#[test]
fn text_only_mistral_and_qwen2_match_reference() {
    for folder in ["mistral", "qwen2"] {
        let (member, values) = (member(folder), values(folder));
        assert!(member.sight.is_none());
        let fixed = [Piece::Fixed(format!("{OPEN}{REST}"))];
        let slots = StagedPrompt::new(&fixed, &member.tokenizer.text).unwrap();
        let want: Vec<Slot> = numbers(&values["head"])
            .into_iter()
            .map(Slot::Token)
            .collect();
        assert_eq!(slots.slots().collect::<Vec<_>>(), want, "{folder}");
        assert_completion(&member, &values, "text", None);
        member.weights.all_used().unwrap();
    }
}
