//! Tests of full-size checkpoints against the reference, in f32 and bf16. The script
//! `assets/golden/make_full_size.py` generates them.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use candle::{DType, Device, Tensor};

use super::{
    encode_image_and_load_decoder, golden_path, load_member_from, relative_difference, to_token_ids,
};
use crate::checkpoints::published::tests::devices::compute_logits;
use crate::support::device::Placement;
use crate::training::encoders::peak_memory::{peak, reset_peak};

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
        let (image, trunk, head) =
            encode_image_and_load_decoder(&member, &f32_values["pixel_values"]);
        let text = |name: &str| trunk.embed(&to_token_ids(&f32_values[name])).unwrap();
        let prompt = Tensor::cat(&[text("head"), image.clone(), text("tail")], 0).unwrap();
        let all = compute_logits((&trunk, &head), &prompt);
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
