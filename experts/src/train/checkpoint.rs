//! Checkpoints: weights in f32, optimizer state and step in one safetensors file, written
//! atomically.

use std::collections::HashMap;
use std::fs;
use std::io::{BufReader, Read};
use std::path::Path;

use candle::{DType, Device, Tensor};
use safetensors::tensor::Metadata;

use super::optimizer::{Optimizer, to_f32_vec};
use crate::Error;

const MEAN_PREFIX: &str = "optimizer.mean.";
const SQUARE_PREFIX: &str = "optimizer.square.";
const STEP_KEY: &str = "optimizer.step";

fn checkpoint_error(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Training(format!("{}: {error}", path.display()))
}

/// Writes `weights` and the optimizer state to one safetensors file. For the parameters of the
/// optimizer it writes [`Optimizer::f32_values`] instead of the values in `weights`. An interrupted
/// write leaves the old file unchanged.
pub fn save_checkpoint(
    path: &Path,
    weights: impl IntoIterator<Item = (String, Tensor)>,
    optimizer: Option<&Optimizer>,
) -> Result<(), Error> {
    let mut tensors: HashMap<String, Tensor> = weights.into_iter().collect();
    if let Some(optimizer) = optimizer {
        tensors.extend(optimizer.f32_values()?);
        for ((name, var), state) in optimizer.parameters.iter().zip(&optimizer.states) {
            let square = state.square.as_ref().map(|square| (SQUARE_PREFIX, square));
            for (prefix, values) in [(MEAN_PREFIX, &state.mean)].into_iter().chain(square) {
                let tensor = Tensor::from_slice(values, var.shape(), &Device::Cpu)?;
                tensors.insert(format!("{prefix}{name}"), tensor);
            }
        }
        tensors.insert(
            STEP_KEY.to_owned(),
            Tensor::new(&[optimizer.step.cast_signed()], &Device::Cpu)?,
        );
    }
    let partial = path.with_extension("partial");
    // `safetensors::save` makes the file readable by its owner only. Create it first to get the
    // permissions of the umask.
    let created = fs::File::create(&partial).and_then(|file| file.metadata());
    let permissions = created.map_err(|e| checkpoint_error(&partial, &e))?.permissions();
    candle::safetensors::save(&tensors, &partial).map_err(|e| checkpoint_error(&partial, &e))?;
    // Sync before the rename: after a power failure the old or the new file is complete.
    let synced = fs::set_permissions(&partial, permissions)
        .and_then(|()| fs::OpenOptions::new().write(true).open(&partial)?.sync_all());
    synced.map_err(|e| checkpoint_error(&partial, &e))?;
    fs::rename(&partial, path).map_err(|e| checkpoint_error(path, &e))
}

/// Reads the weights of a checkpoint, on the CPU, and restores the state and the master weights of
/// the optimizer. The caller passes the weights to [`super::Parameters::restore`].
pub fn load_checkpoint(
    path: &Path,
    optimizer: Option<&mut Optimizer>,
) -> Result<HashMap<String, Tensor>, Error> {
    let mut tensors = load_shared_checkpoint(path, |_, tensor| tensor)?;
    if let Some(optimizer) = optimizer {
        let missing = |name: &str| checkpoint_error(path, &format!("tensor `{name}` is missing"));
        let step = tensors.get(STEP_KEY).ok_or_else(|| missing(STEP_KEY))?;
        optimizer.step = step.to_vec1::<i64>()?.first().copied().unwrap_or(0).max(0) as u64;
        for ((name, var), state) in optimizer.parameters.iter().zip(&mut optimizer.states) {
            let master = state.master.as_mut().map(|master| ("", master));
            let square = state.square.as_mut().map(|square| (SQUARE_PREFIX, square));
            let moments = [(MEAN_PREFIX, &mut state.mean)].into_iter().chain(square);
            for (prefix, values) in moments.chain(master) {
                let key = format!("{prefix}{name}");
                let tensor = tensors.get(&key).ok_or_else(|| missing(&key))?;
                if tensor.shape() != var.shape() {
                    let (got, expected) = (tensor.shape(), var.shape());
                    let problem = format!("`{key}` has shape {got:?}, expected {expected:?}");
                    return Err(checkpoint_error(path, &problem));
                }
                *values = to_f32_vec(tensor)?;
            }
        }
    }
    tensors.retain(|name, _| !name.starts_with("optimizer."));
    Ok(tensors)
}

/// Reads the tensors of a checkpoint, on the CPU. `share` receives each tensor as soon as it is read
/// and may return one with the same values that is in memory already.
pub fn load_shared_checkpoint(
    path: &Path,
    share: impl Fn(&str, Tensor) -> Tensor,
) -> Result<HashMap<String, Tensor>, Error> {
    read_tensors(path, share).map_err(|e| {
        let hint = "hint: if the file is truncated, delete it and repeat the training";
        checkpoint_error(path, &format!("{e}\n{hint}"))
    })
}

/// Reads the tensors of a safetensors file one by one, with a buffer of one tensor. A function that
/// reads the whole file first takes twice the memory.
fn read_tensors(
    path: &Path,
    share: impl Fn(&str, Tensor) -> Tensor,
) -> Result<HashMap<String, Tensor>, Box<dyn std::error::Error>> {
    let file = fs::File::open(path)?;
    let len = file.metadata()?.len();
    let mut source = BufReader::new(file);
    let mut size = [0; 8];
    source.read_exact(&mut size)?;
    let size = u64::from_le_bytes(size);
    if size > len.saturating_sub(8) {
        return Err(format!("a header of {size} bytes in a file of {len} bytes").into());
    }
    let mut header = vec![0; usize::try_from(size)?];
    source.read_exact(&mut header)?;
    let metadata: Metadata = serde_json::from_slice(&header)?;
    let (expected, found) = (metadata.data_len() as u64, len - 8 - size);
    if expected != found {
        return Err(format!("expected {expected} bytes of tensors, found {found}").into());
    }
    let (mut tensors, mut bytes) = (HashMap::new(), Vec::new());
    for name in metadata.offset_keys() {
        let Some(info) = metadata.info(&name) else { continue };
        bytes.resize(info.data_offsets.1 - info.data_offsets.0, 0);
        source.read_exact(&mut bytes)?;
        let dtype = DType::try_from(info.dtype)?;
        let tensor = Tensor::from_raw_buffer(&bytes, dtype, &info.shape, &Device::Cpu)?;
        let tensor = share(&name, tensor);
        tensors.insert(name, tensor);
    }
    Ok(tensors)
}
