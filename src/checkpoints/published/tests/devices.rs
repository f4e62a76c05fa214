//! Tests of image tokens and logits in half precision and on a GPU.

use acem3_experts::decoder::{BatchLayout, Head, Trunk};
use candle::{DType, Device, Tensor};

use super::{
    encode_image_and_load_decoder, expected_values, load_member_on, relative_difference,
    to_token_ids,
};
use crate::checkpoints::panel::member::Member;
use crate::checkpoints::published::tests::llava_variants::{
    embed_prompt, image_tiles, last_logits, load_values, prompt_names,
};
use crate::judging::panel::image_encoder::ImageEncoder;
use crate::support::device::Placement;

/// LLaVA 1.5 in the layout of transformers and in the original layout.
const LLAVA: [&str; 2] = ["llava", "llava-original"];
/// Other layouts.
const OTHER_LAYOUTS: [&str; 6] =
    ["llava-next", "llava-siglip", "llava-mistral", "internvl", "mistral", "qwen2"];

/// Image tokens and logits of every prompt: name, computed value, reference value.
type ComparedOutputs = Vec<(String, Tensor, Tensor)>;

pub(super) fn compute_logits((trunk, head): (&Trunk, &Head), prompt: &Tensor) -> Tensor {
    let layout = BatchLayout::causal(prompt.dim(0).unwrap());
    let middle = trunk.forward(prompt, &layout).unwrap();
    head.logits(&head.forward(&middle, &layout).unwrap()).unwrap()
}

fn compute_outputs(placement: &Placement) -> ComparedOutputs {
    let llava = LLAVA.iter().flat_map(|folder| llava_outputs(folder, placement));
    let others = OTHER_LAYOUTS.iter().flat_map(|folder| layout_outputs(folder, placement));
    llava.chain(others).collect()
}

fn load_for_judging(folder: &str, placement: &Placement) -> Member {
    let member = load_member_on(folder, placement);
    Member { weights: member.weights.for_judging(placement), ..member }
}

fn llava_outputs(folder: &str, placement: &Placement) -> ComparedOutputs {
    let (member, expected) = (load_for_judging(folder, placement), expected_values());
    let pixels = expected["pixel_values"].to_device(&placement.device).unwrap();
    let (image, trunk, head) = encode_image_and_load_decoder(&member, &pixels);
    let text = |name: &str| trunk.embed(&to_token_ids(&expected[name])).unwrap();
    let prompt = Tensor::cat(&[text("head"), image.clone(), text("tail")], 0).unwrap();
    let logits = compute_logits((&trunk, &head), &prompt);
    let outputs = [("image_tokens", image), ("logits", logits)].into_iter();
    outputs
        .map(|(name, actual)| (format!("{folder}: {name}"), actual, expected[name].clone()))
        .collect()
}

fn layout_outputs(folder: &str, placement: &Placement) -> ComparedOutputs {
    let (member, device) = (load_for_judging(folder, placement), &placement.device);
    let values = load_values(folder);
    let mut outputs = Vec::new();
    for name in prompt_names(&values) {
        let image_tokens = member.vision.as_ref().map(|vision| {
            let vb = member.weights.builder(device);
            let encoder = ImageEncoder::load(vision, &vb, device).unwrap();
            encoder.project(&image_tiles(&encoder, &values, &name).1).unwrap()
        });
        let (trunk, head, prompt) = embed_prompt(&member, &values, image_tokens.clone(), device);
        let expected = &values[&format!("{name}.logits")];
        let actual = last_logits(&compute_logits((&trunk, &head), &prompt), expected);
        outputs.push((format!("{folder}, {name}: logits"), actual, expected.clone()));
        if let Some(image_tokens) = image_tokens {
            let expected = values[&format!("{name}.image_tokens")].clone();
            outputs.push((format!("{folder}, {name}: image tokens"), image_tokens, expected));
        }
    }
    outputs
}

/// Checks half precision within tolerances for 8 (bf16) and 11 (f16) significant bits. In bf16, the inputs
/// of products are rounded, too.
#[test]
fn half_precision_is_close_to_reference() {
    for (dtype, tolerance) in [(DType::BF16, 3e-2), (DType::F16, 2e-3)] {
        let placement = Placement { dtype, ..Placement::cpu() };
        for (what, actual, expected) in compute_outputs(&placement) {
            let difference = relative_difference(&actual, &expected);
            assert!(difference > 0.0 && difference <= tolerance, "{dtype:?}, {what}: {difference}");
        }
    }
}

/// Training and other uses of the same weights do not round inputs.
#[test]
fn only_judging_in_bf16_rounds_inputs() {
    let placement = Placement { dtype: DType::BF16, ..Placement::cpu() };
    let expected = expected_values();
    let prompt = {
        let member = load_member_on(LLAVA[0], &placement);
        let (image, trunk, _) = encode_image_and_load_decoder(&member, &expected["pixel_values"]);
        let text = trunk.embed(&to_token_ids(&expected["head"])).unwrap();
        Tensor::cat(&[text, image], 0).unwrap()
    };
    let outputs = |member: Member| {
        let (image, trunk, head) =
            encode_image_and_load_decoder(&member, &expected["pixel_values"]);
        [image, compute_logits((&trunk, &head), &prompt)]
    };
    let exact = outputs(load_member_on(LLAVA[0], &placement));
    let rounded = outputs(load_for_judging(LLAVA[0], &placement));
    for (exact, rounded) in exact.iter().zip(&rounded) {
        let difference = relative_difference(exact, rounded);
        assert!(difference > 1e-5 && difference < 2e-2, "{difference}");
    }
    let f32_placement = Placement::cpu();
    let exact = outputs(load_member_on(LLAVA[0], &f32_placement));
    let judging = outputs(load_for_judging(LLAVA[0], &f32_placement));
    for (exact, judging) in exact.iter().zip(&judging) {
        assert!(relative_difference(exact, judging) <= 0.0);
    }
}

/// Run with `cargo test --features cuda -- --ignored on_a_gpu`.
#[test]
#[ignore = "needs a GPU and a build with CUDA"]
fn on_a_gpu_outputs_match_cpu() {
    let device = Device::new_cuda_with_stream(0).unwrap();
    for (dtype, tolerance) in [(DType::F32, 1e-3), (DType::BF16, 2e-2)] {
        let cpu = Placement { dtype, ..Placement::cpu() };
        let gpu = Placement { device: device.clone(), dtype, ..Placement::cpu() };
        let pairs = compute_outputs(&cpu).into_iter().zip(compute_outputs(&gpu));
        for ((what, on_cpu, _), (_, on_gpu, _)) in pairs {
            let difference = relative_difference(&on_gpu.to_device(&Device::Cpu).unwrap(), &on_cpu);
            assert!(difference <= tolerance, "{dtype:?}, {what}: {difference}");
        }
    }
}
