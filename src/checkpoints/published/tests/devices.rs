//! Tests of image tokens and logits in half precision and on a GPU.

use acem3_experts::decoder::{Head, Sight, Trunk};
use candle::{DType, Device, Tensor};

use super::{distance, expected, looked, member_at, numbers};
use crate::checkpoints::published::tests::llava_variants::{last, prompt, prompts, tiles, values};
use crate::judging::panel::image_encoder::ImageEncoder;
use crate::support::device::Placement;

/// LLaVA 1.5 in the layout of transformers and in the original layout.
const LLAVA: [&str; 2] = ["llava", "llava-original"];
/// Other layouts.
const KINDS: [&str; 5] = [
    "llava-next",
    "llava-siglip",
    "llava-mistral",
    "mistral",
    "qwen2",
];

/// Image tokens and logits of every prompt: name, computed value, reference value.
type Outcomes = Vec<(String, Tensor, Tensor)>;

pub(super) fn logits((trunk, head): (&Trunk, &Head), prompt: &Tensor) -> Tensor {
    let seen = Sight::causal(prompt.dim(0).unwrap());
    let middle = trunk.forward(prompt, &seen).unwrap();
    head.logits(&head.forward(&middle, &seen).unwrap()).unwrap()
}

fn outcomes(place: &Placement) -> Outcomes {
    let llava = LLAVA.iter().flat_map(|folder| of_llava(folder, place));
    let kinds = KINDS.iter().flat_map(|folder| of_kind(folder, place));
    llava.chain(kinds).collect()
}

fn of_llava(folder: &str, place: &Placement) -> Outcomes {
    let (member, expected) = (member_at(folder, place), expected());
    let pixels = expected["pixel_values"].to_device(&place.device).unwrap();
    let (image, trunk, head) = looked(&member, &pixels);
    let text = |name: &str| trunk.embed(&numbers(&expected[name])).unwrap();
    let prompt = Tensor::cat(&[text("head"), image.clone(), text("tail")], 0).unwrap();
    let logits = logits((&trunk, &head), &prompt);
    let found = [("image_tokens", image), ("logits", logits)].into_iter();
    found
        .map(|(name, got)| (format!("{folder}: {name}"), got, expected[name].clone()))
        .collect()
}

fn of_kind(folder: &str, place: &Placement) -> Outcomes {
    let (member, device) = (member_at(folder, place), &place.device);
    let values = values(folder);
    let mut all = Vec::new();
    for name in prompts(&values) {
        let seen = member.sight.as_ref().map(|sight| {
            let vb = member.weights.builder(device);
            let encoder = ImageEncoder::load(sight, &vb, device).unwrap();
            encoder.tokens(&tiles(&encoder, &values, &name).1).unwrap()
        });
        let (trunk, head, prompt) = prompt(&member, &values, seen.clone(), device);
        let want = &values[&format!("{name}.logits")];
        let got = last(&logits((&trunk, &head), &prompt), want);
        all.push((format!("{folder}, {name}: logits"), got, want.clone()));
        if let Some(seen) = seen {
            let want = values[&format!("{name}.image_tokens")].clone();
            all.push((format!("{folder}, {name}: image tokens"), seen, want));
        }
    }
    all
}

/// Checks half precision within tolerances for 8 (bf16) and 11 (f16) significant bits.
#[test]
fn half_precision_is_close_to_reference() {
    for (dtype, most) in [(DType::BF16, 2e-2), (DType::F16, 2e-3)] {
        let place = Placement {
            dtype,
            ..Placement::cpu()
        };
        for (what, got, want) in outcomes(&place) {
            let far = distance(&got, &want);
            assert!(far > 0.0 && far <= most, "{dtype:?}, {what}: {far}");
        }
    }
}

/// Run with `cargo test --features cuda -- --ignored on_a_gpu`.
#[test]
#[ignore = "needs a GPU and a build with CUDA"]
fn on_a_gpu_outputs_match_cpu() {
    let device = Device::new_cuda(0).unwrap();
    for (dtype, most) in [(DType::F32, 1e-3), (DType::BF16, 2e-2)] {
        let cpu = Placement {
            dtype,
            ..Placement::cpu()
        };
        let gpu = Placement {
            device: device.clone(),
            dtype,
        };
        let pairs = outcomes(&cpu).into_iter().zip(outcomes(&gpu));
        for ((what, on_cpu, _), (_, on_gpu, _)) in pairs {
            let far = distance(&on_gpu.to_device(&Device::Cpu).unwrap(), &on_cpu);
            assert!(far <= most, "{dtype:?}, {what}: {far}");
        }
    }
}
