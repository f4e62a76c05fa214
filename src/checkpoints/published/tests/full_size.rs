//! Tests of full-size checkpoints against the reference, in f32 and bf16. The script
//! `assets/golden/make_full_size.py` generates them.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use acem3_experts::decoder::BatchLayout;
use acem3_experts::ops::AttentionMask;
use acem3_vision::{TileGrid, Tiles};
use candle::{DType, Device, Tensor};

use super::llava_variants::embed_prompt;
use super::{golden_path, load_member_from, relative_difference, to_token_ids};
use crate::checkpoints::panel::member::Member;
use crate::judging::panel::image_encoder::ImageEncoder;
use crate::support::device::Placement;
use crate::training::comparisons::encoders::peak_memory::{peak, reset_peak};

/// Runs the script for a kind of model and returns its output.
fn run_reference(python: &OsStr, kind: &str, folder: &Path, extra_args: &[&str]) -> String {
    let mut command = Command::new(python);
    command.arg(golden_path("make_full_size.py")).arg(kind).arg(folder).args(extra_args);
    let output = command.output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
#[ignore = "writes 5.6 GB with the reference: ACEM3_PYTHON names a Python with the packages of make_checkpoints.py"]
fn full_size_llava_matches_reference() {
    assert_full_size_matches_reference("llava");
}

#[test]
#[ignore = "writes 3.8 GB with the reference: ACEM3_PYTHON names a Python with the packages of make_checkpoints.py"]
fn full_size_internvl_matches_reference() {
    assert_full_size_matches_reference("internvl");
}

#[test]
#[ignore = "writes 3.6 GB with the reference: ACEM3_PYTHON names a Python with the packages of make_checkpoints.py"]
fn full_size_onevision_matches_reference() {
    assert_full_size_matches_reference("onevision");
}

#[test]
#[ignore = "writes 6.6 GB with the reference: ACEM3_PYTHON names a Python with the packages of make_checkpoints.py"]
fn full_size_gemma3_matches_reference() {
    assert_full_size_matches_reference("gemma3");
}

/// Encodes the reference's pixels to image tokens, as a panel does.
fn encode(member: &Member, values: &HashMap<String, Tensor>) -> Tensor {
    let vb = member.weights.builder(&Device::Cpu);
    let vision = member.vision.as_ref().unwrap();
    let encoder = ImageEncoder::load(vision, &vb, &Device::Cpu).unwrap();
    let grid = to_token_ids(&values["grid"]);
    let [rows, columns, height, width] = [0, 1, 2, 3].map(|i| grid[i] as usize);
    let tiles = Tiles {
        pixel_values: values["pixel_values"].clone(),
        grid: TileGrid {
            inputs: values["pixel_values"].dim(0).unwrap(),
            rows,
            columns,
            image_size: (height, width),
        },
    };
    encoder.project(&tiles).unwrap()
}

/// Computes the logits of a prompt of texts around an image.
fn logits(member: &Member, values: &HashMap<String, Tensor>, image: &Tensor) -> Tensor {
    let (trunk, head, prompt) = embed_prompt(member, values, Some(image.clone()), &Device::Cpu);
    let mut layout = BatchLayout::causal(prompt.dim(0).unwrap());
    if member.decoder.has_bidirectional_images() {
        let start = values["head"].elem_count();
        let tokens = std::iter::once(start..start + image.dim(0).unwrap());
        layout.mask = AttentionMask::Bidirectional(tokens.collect());
    }
    let middle = trunk.forward(&prompt, &layout).unwrap();
    head.logits(&head.forward(&middle, &layout).unwrap()).unwrap()
}

/// Checks image tokens and logits of a kind of model, and prints the differences.
#[expect(clippy::print_stdout, reason = "prints measurements, and the reason for a skipped test")]
fn assert_full_size_matches_reference(kind: &str) {
    let Some(python) = std::env::var_os("ACEM3_PYTHON") else {
        println!("skipped: ACEM3_PYTHON is not set");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run_reference(&python, kind, folder, &[]);
    let peaks = ["float32", "bfloat16"].map(|dtype| run_reference(&python, kind, folder, &[dtype]));
    let read = |dtype: &str| {
        let path = folder.join(format!("values-{dtype}.safetensors"));
        candle::safetensors::load(path, &Device::Cpu).unwrap()
    };
    let (f32_values, bf16_values) = (read("float32"), read("bfloat16"));
    // In bf16 the reference rounds every intermediate result, acem3 only the matrices.
    for (dtype, tolerance, reference_peak) in
        [(DType::F32, 1e-4, &peaks[0]), (DType::BF16, 5e-2, &peaks[1])]
    {
        reset_peak();
        let placement = Placement { dtype, ..Placement::cpu() };
        let member = load_member_from(folder.to_owned(), &placement);
        let image = encode(&member, &f32_values);
        let all = logits(&member, &f32_values, &image);
        let last = all.narrow(0, all.dim(0).unwrap() - 32, 32).unwrap();
        for (name, actual) in [("image_tokens", &image), ("logits", &last)] {
            let (difference, reference_difference) = (
                relative_difference(actual, &f32_values[name]),
                relative_difference(&bf16_values[name], &f32_values[name]),
            );
            println!(
                "{kind}, {dtype:?}, {name}: relative difference from the reference in f32 {difference:e}, \
                 of the reference in bf16 {reference_difference:e}"
            );
            assert!(difference <= tolerance, "{kind}, {dtype:?}, {name}: {difference}");
        }
        drop(member);
        println!("{kind}, {dtype:?}: peak {:?} bytes, reference {reference_peak}", peak());
    }
}
