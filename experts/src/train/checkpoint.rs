//! Checkpoints: weights in single precision, the optimizer's means and the step, replaced atomically.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use candle::{Device, Tensor};

use super::adamw::{AdamW, floats};
use crate::Error;

const MEAN: &str = "optimizer.mean.";
const SQUARE: &str = "optimizer.square.";
const STEP: &str = "optimizer.step";

fn failed(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Training(format!("{}: {error}", path.display()))
}

/// Writes weights (`all`) and the optimizer's state into one safetensors file. Of what the optimizer has, its own
/// values ([`AdamW::values`]) are written. An interrupted write leaves the old file as it was.
pub fn save_checkpoint(
    path: &Path,
    all: impl IntoIterator<Item = (String, Tensor)>,
    optimizer: Option<&AdamW>,
) -> Result<(), Error> {
    let mut tensors: HashMap<String, Tensor> = all.into_iter().collect();
    if let Some(optimizer) = optimizer {
        tensors.extend(optimizer.values()?);
        for ((name, var), state) in optimizer.parameters.iter().zip(&optimizer.states) {
            for (prefix, values) in [(MEAN, &state.mean), (SQUARE, &state.square)] {
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
    // On the disk before it takes the old one's place: a power cut leaves one of the two.
    let kept = fs::set_permissions(&partial, readers).and_then(|()| {
        fs::OpenOptions::new()
            .write(true)
            .open(&partial)?
            .sync_all()
    });
    kept.map_err(|e| failed(&partial, &e))?;
    fs::rename(&partial, path).map_err(|e| failed(path, &e))
}

/// The weights of a checkpoint, on the CPU; the optimizer, where given, continues where it stood, its masters among
/// these weights. The parameters themselves are given their values by [`super::Parameters::restore`].
pub fn load_checkpoint(
    path: &Path,
    optimizer: Option<&mut AdamW>,
) -> Result<HashMap<String, Tensor>, Error> {
    let mut tensors = candle::safetensors::load(path, &Device::Cpu).map_err(|e| {
        let hint = "hint: if it was cut off, delete it, and what it held is learned again";
        failed(path, &format!("{e}\n{hint}"))
    })?;
    if let Some(optimizer) = optimizer {
        let missing = |what: &str| failed(path, &format!("has no `{what}`"));
        let step = tensors.get(STEP).ok_or_else(|| missing(STEP))?;
        optimizer.step = step.to_vec1::<i64>()?.first().copied().unwrap_or(0).max(0) as u64;
        for ((name, var), state) in optimizer.parameters.iter().zip(&mut optimizer.states) {
            let master = state.master.as_mut().map(|master| ("", master));
            let means = [(MEAN, &mut state.mean), (SQUARE, &mut state.square)];
            for (prefix, values) in means.into_iter().chain(master) {
                let key = format!("{prefix}{name}");
                let tensor = tensors.get(&key).ok_or_else(|| missing(&key))?;
                if tensor.shape() != var.shape() {
                    let (got, expected) = (tensor.shape(), var.shape());
                    let problem = format!("`{key}` has shape {got:?}, expected {expected:?}");
                    return Err(failed(path, &problem));
                }
                *values = floats(tensor)?;
            }
        }
    }
    tensors.retain(|name, _| !name.starts_with("optimizer."));
    Ok(tensors)
}
