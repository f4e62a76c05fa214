//! Checkpoints: weights, the optimizer's means and the step, replaced atomically.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use candle::{Device, Tensor};

use super::adamw::AdamW;
use crate::Error;

const MEAN: &str = "optimizer.mean.";
const SQUARE: &str = "optimizer.square.";
const STEP: &str = "optimizer.step";

fn failed(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Training(format!("{}: {error}", path.display()))
}

/// Writes weights (`all`) and the optimizer's state into one safetensors file. An interrupted write
/// leaves the old file as it was.
pub fn save_checkpoint(
    path: &Path,
    all: &[(String, candle::Var)],
    optimizer: Option<&AdamW>,
) -> Result<(), Error> {
    let mut tensors: HashMap<String, Tensor> = all
        .iter()
        .map(|(name, var)| (name.clone(), var.as_detached_tensor()))
        .collect();
    if let Some(optimizer) = optimizer {
        for ((name, var), moments) in optimizer.parameters.iter().zip(&optimizer.moments) {
            for (prefix, values) in [(MEAN, &moments.mean), (SQUARE, &moments.square)] {
                let tensor = Tensor::from_slice(values, var.shape(), &Device::Cpu)?;
                tensors.insert(format!("{prefix}{name}"), tensor);
            }
        }
        tensors.insert(
            STEP.to_owned(),
            Tensor::new(&[optimizer.step.cast_signed()], &Device::Cpu)?,
        );
    }
    let partial = path.with_extension("partial");
    // The library's own way of writing gives a file to its owner alone, whatever the umask says.
    let made = fs::File::create(&partial).and_then(|file| file.metadata());
    let readers = made.map_err(|e| failed(&partial, &e))?.permissions();
    candle::safetensors::save(&tensors, &partial).map_err(|e| failed(&partial, &e))?;
    fs::set_permissions(&partial, readers).map_err(|e| failed(&partial, &e))?;
    fs::rename(&partial, path).map_err(|e| failed(path, &e))
}

/// The weights of a checkpoint; the optimizer, where given, continues where it stood.
pub fn load_checkpoint(
    path: &Path,
    optimizer: Option<&mut AdamW>,
) -> Result<HashMap<String, Tensor>, Error> {
    let mut tensors =
        candle::safetensors::load(path, &Device::Cpu).map_err(|e| failed(path, &e))?;
    if let Some(optimizer) = optimizer {
        let missing = |what: &str| failed(path, &format!("has no `{what}`"));
        let step = tensors.get(STEP).ok_or_else(|| missing(STEP))?;
        optimizer.step = step.to_vec1::<i64>()?.first().copied().unwrap_or(0).max(0) as u64;
        for ((name, var), moments) in optimizer.parameters.iter().zip(&mut optimizer.moments) {
            for (prefix, values) in [(MEAN, &mut moments.mean), (SQUARE, &mut moments.square)] {
                let key = format!("{prefix}{name}");
                let tensor = tensors.get(&key).ok_or_else(|| missing(&key))?;
                if tensor.shape() != var.shape() {
                    let (got, expected) = (tensor.shape(), var.shape());
                    let problem = format!("`{key}` has shape {got:?}, expected {expected:?}");
                    return Err(failed(path, &problem));
                }
                *values = tensor.flatten_all()?.to_vec1::<f32>()?;
            }
        }
    }
    tensors.retain(|name, _| !name.starts_with("optimizer."));
    Ok(tensors)
}
