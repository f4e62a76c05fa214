//! Full-size encoders compared with the reference, in f32 and bf16. `assets/golden/make_encoders.py` generates
//! them and reports its peak memory.

#![expect(
    clippy::print_stdout,
    reason = "prints measurements and the reason for skipped tests"
)]

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use acem3::training::encoders::peak_memory::{forget_peak, peak};
use acem3_vision::Encoder as _;
use acem3_vision::published::known;
use candle::{DType, Device, Result, Shape, Tensor, bail};
use candle_nn::VarBuilder;
use candle_nn::var_builder::SimpleBackend;

use crate::encoders::{compare, golden, open, tensors, weights};

/// Weights of several dtypes, returned without conversion.
struct Kept(HashMap<String, Tensor>);

impl SimpleBackend for Kept {
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
fn narrowed(weights: HashMap<String, Tensor>) -> HashMap<String, Tensor> {
    let narrow = |(name, tensor): (String, Tensor)| {
        let matrix = tensor.rank() == 2 && !name.contains("embed");
        let tensor = if matrix {
            tensor.to_dtype(DType::BF16).unwrap()
        } else {
            tensor
        };
        (name, tensor)
    };
    weights.into_iter().map(narrow).collect()
}

/// Writes the reference's weights and values to a folder and returns its peak memory.
fn reference(python: &std::ffi::OsStr, folder: &Path, name: &str, dtype: &str) -> String {
    let mut command = Command::new(python);
    command.arg(golden().join("make_encoders.py"));
    command.arg("--full").arg(folder).args([name, dtype]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
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
        let peaks = ["bfloat16", "float32"].map(|dtype| reference(&python, &folder, name, dtype));
        let (published, known) = (open(&folder), known(id).unwrap().published());
        assert_eq!(published.config, known.config);
        let size = |p: &acem3_vision::Published| p.processor.output_size();
        assert_eq!(size(&published), size(&known));
        for (dtype, most, its) in [("f32", 1e-4, &peaks[1]), ("bf16", 5e-2, &peaks[0])] {
            forget_peak();
            let stored = weights(&folder, &published);
            let stored = if dtype == "f32" {
                stored
            } else {
                narrowed(stored)
            };
            let vb = VarBuilder::from_backend(Box::new(Kept(stored)), DType::F32, Device::Cpu);
            let tower = published.load(&vb, published.selection()).unwrap();
            let values = tensors(&folder.join("values.safetensors"));
            let worst = compare(&tower, &values, most);
            println!(
                "{name} in {dtype}, {} weights: {worst:e} from the reference in f32; peak {:?} bytes, \
                 the reference's {its}",
                tower.parameters(),
                peak()
            );
        }
    }
}
