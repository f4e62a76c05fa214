//! Full-size encoders compared with the reference, in f32 and bf16.
//! `assets/golden/make_encoders.py` generates them and reports its peak memory.

#![expect(clippy::print_stdout, reason = "prints measurements and the reason for skipped tests")]

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use acem3::training::comparisons::encoders::peak_memory::{peak, reset_peak};
use acem3_vision::Encoder as _;
use acem3_vision::published::encoder_by_name;
use candle::{DType, Device, Result, Shape, Tensor, bail};
use candle_nn::VarBuilder;
use candle_nn::var_builder::SimpleBackend;

use crate::encoders::{
    assert_matches_reference, golden_folder, load_tensors, load_weights, open_encoder,
};

/// Weights of several dtypes, returned without conversion.
struct StoredWeights(HashMap<String, Tensor>);

impl SimpleBackend for StoredWeights {
    fn get(
        &self,
        shape: Shape,
        name: &str,
        _: candle_nn::Init,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        let tensor = self.get_unchecked(name, dtype, device)?;
        if tensor.shape() != &shape {
            bail!("{name}: {:?}, expected {shape:?}", tensor.shape());
        }
        Ok(tensor)
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> Result<Tensor> {
        match self.0.get(name) {
            Some(tensor) => Ok(tensor.clone()),
            None => bail!("no tensor {name}"),
        }
    }

    fn contains_tensor(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

/// Converts matrices to bf16 and keeps other tensors, like `--dtype bf16`.
fn convert_matrices_to_bf16(weights: HashMap<String, Tensor>) -> HashMap<String, Tensor> {
    let convert = |(name, tensor): (String, Tensor)| {
        let is_matrix = tensor.rank() == 2 && !name.contains("embed");
        let tensor = if is_matrix { tensor.to_dtype(DType::BF16).unwrap() } else { tensor };
        (name, tensor)
    };
    weights.into_iter().map(convert).collect()
}

/// Writes weights and values of the reference to a folder. Returns the peak memory of the
/// reference.
fn run_reference(python: &std::ffi::OsStr, folder: &Path, name: &str, dtype: &str) -> String {
    let mut command = Command::new(python);
    command.arg(golden_folder().join("make_encoders.py"));
    command.arg("--full").arg(folder).args([name, dtype]);
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
#[ignore = "writes 1.6 GB with the reference: ACEM3_PYTHON names a Python with the packages of make_encoders.py"]
fn full_size_encoders_match_reference() {
    let Some(python) = std::env::var_os("ACEM3_PYTHON") else {
        println!("skipped: ACEM3_PYTHON is not set");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (name, id) in [("clip", "clip-vit-l14-336"), ("biomedclip", "biomedclip")] {
        let folder = folder.path().join(name);
        // The second call overwrites the values of the first, so float32 is the reference.
        let peaks =
            ["bfloat16", "float32"].map(|dtype| run_reference(&python, &folder, name, dtype));
        let (published, known) =
            (open_encoder(&folder), encoder_by_name(id).unwrap().published_encoder());
        assert_eq!(published.config, known.config);
        let size = |p: &acem3_vision::PublishedEncoder| p.processor.output_size();
        assert_eq!(size(&published), size(&known));
        for (dtype, tolerance, reference_peak) in
            [("f32", 1e-4, &peaks[1]), ("bf16", 5e-2, &peaks[0])]
        {
            reset_peak();
            let stored = load_weights(&folder, &published);
            let stored = if dtype == "f32" { stored } else { convert_matrices_to_bf16(stored) };
            let vb =
                VarBuilder::from_backend(Box::new(StoredWeights(stored)), DType::F32, Device::Cpu);
            let tower = published.load(&vb, published.default_selection()).unwrap();
            let values = load_tensors(&folder.join("values.safetensors"));
            let worst = assert_matches_reference(&tower, &values, tolerance);
            println!(
                "{name} in {dtype}, {} weights: largest difference from the f32 reference {worst:e}; \
                 peak {:?} bytes, peak of the reference {reference_peak}",
                tower.parameter_count(),
                peak()
            );
        }
    }
}
