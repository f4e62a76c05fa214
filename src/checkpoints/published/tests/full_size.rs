//! Test of a full-size checkpoint against the reference, in f32 and bf16. The script
//! `assets/golden/make_full_size.py` generates it.

use std::path::Path;
use std::process::Command;

use candle::{DType, Device, Tensor};

use super::{distance, golden, looked, member_of, numbers};
use crate::checkpoints::published::tests::devices::logits;
use crate::support::device::Placement;
use crate::training::encoders::peak_memory::{forget_peak, peak};

/// Runs the script and returns its output.
fn reference(python: &std::ffi::OsStr, folder: &Path, more: &[&str]) -> String {
    let mut command = Command::new(python);
    command
        .arg(golden("make_full_size.py"))
        .arg(folder)
        .args(more);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
#[ignore = "writes 5.6 GB with the reference: ACEM3_PYTHON names a Python with the packages of make_checkpoints.py"]
#[expect(
    clippy::print_stdout,
    reason = "prints measurements, and the reason for a skipped test"
)]
fn full_size_llava_matches_reference() {
    let Some(python) = std::env::var_os("ACEM3_PYTHON") else {
        println!("skipped: ACEM3_PYTHON is not set");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    reference(&python, folder, &[]);
    let peaks = ["float32", "bfloat16"].map(|dtype| reference(&python, folder, &[dtype]));
    let read = |dtype: &str| {
        let path = folder.join(format!("values-{dtype}.safetensors"));
        candle::safetensors::load(path, &Device::Cpu).unwrap()
    };
    let (wide, narrow) = (read("float32"), read("bfloat16"));
    // In bf16 the reference rounds every intermediate result, acem3 only the matrices.
    for (dtype, most, its) in [
        (DType::F32, 1e-4, &peaks[0]),
        (DType::BF16, 5e-2, &peaks[1]),
    ] {
        forget_peak();
        let place = Placement {
            dtype,
            ..Placement::cpu()
        };
        let member = member_of(folder.to_owned(), &place);
        let (image, trunk, head) = looked(&member, &wide["pixel_values"]);
        let text = |name: &str| trunk.embed(&numbers(&wide[name])).unwrap();
        let prompt = Tensor::cat(&[text("head"), image.clone(), text("tail")], 0).unwrap();
        let all = logits((&trunk, &head), &prompt);
        let last = all.narrow(0, all.dim(0).unwrap() - 32, 32).unwrap();
        for (name, got) in [("image_tokens", &image), ("logits", &last)] {
            let (far, own) = (
                distance(got, &wide[name]),
                distance(&narrow[name], &wide[name]),
            );
            println!("{dtype:?}, {name}: {far:e} from the reference's f32; its own bf16 {own:e}");
            assert!(far <= most, "{dtype:?}, {name}: {far}");
        }
        drop(member);
        println!("{dtype:?}: peak {:?} bytes, the reference's {its}", peak());
    }
}
