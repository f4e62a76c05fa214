//! State dict of a checkpoint: maps each tensor to its bytes in a storage.

use std::ops::Range;

use anyhow::{Context, Result, bail};
use candle::DType;

use super::pickle::{Pickle, PickleValue, ValueId};

/// A tensor as a view into a storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TensorView {
    /// Name of the tensor.
    pub name: String,
    /// Name of the storage in the archive.
    pub storage: String,
    /// Type of its values.
    pub dtype: DType,
    /// Shape.
    pub shape: Vec<usize>,
    /// Offset in the storage, in values.
    offset: usize,
}

impl TensorView {
    /// Creates a view of f32 values into the storage `0`.
    #[cfg(test)]
    pub(super) fn new(name: &str, offset: usize, shape: &[usize]) -> Self {
        Self {
            name: name.to_owned(),
            storage: "0".to_owned(),
            dtype: DType::F32,
            shape: shape.to_vec(),
            offset,
        }
    }

    /// Returns its byte range in a storage of `len` bytes.
    pub(super) fn byte_range(&self, len: usize) -> Result<Range<usize>> {
        let value_size = self.dtype.size_in_bytes();
        let count = self.shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        let byte_range = || {
            let start = self.offset.checked_mul(value_size)?;
            let end = start.checked_add(count?.checked_mul(value_size)?)?;
            Some(start..end)
        };
        match byte_range().filter(|range| range.end <= len) {
            Some(range) => Ok(range),
            None => bail!(
                "tensor `{}` of shape {:?} does not fit into its storage of {len} bytes",
                self.name,
                self.shape
            ),
        }
    }
}

/// Parses the tensors of a pickled state dict.
pub(super) fn parse_tensors(bytes: &[u8]) -> Result<Vec<TensorView>> {
    let pickle = Pickle::read(bytes)?;
    let PickleValue::Dict(items) = pickle.root() else { bail!("expected a dict of tensors") };
    let mut views = Vec::new();
    for (key, value) in items {
        let PickleValue::Text(name) = pickle.get(*key) else {
            bail!("tensor name is not a string")
        };
        let view = parse_view(&pickle, name, *value).with_context(|| format!("`{name}`"))?;
        views.push(view);
    }
    Ok(views)
}

fn parse_view(pickle: &Pickle, name: &str, value: ValueId) -> Result<TensorView> {
    let PickleValue::Call(callee, arguments) = pickle.get(value) else { bail!("not a tensor") };
    let arguments = as_tuple(pickle, *arguments)?;
    match pickle.get(*callee) {
        // The first argument of a parameter is its tensor. Parameters do not nest.
        PickleValue::Global(f) if f == "torch._utils._rebuild_parameter" => {
            let inner = *arguments.first().context("parameter without a tensor")?;
            match pickle.get(inner) {
                PickleValue::Call(callee, arguments) if is_tensor(pickle, *callee) => {
                    parse_tensor(pickle, name, as_tuple(pickle, *arguments)?)
                }
                _ => bail!("parameter without a tensor"),
            }
        }
        _ if is_tensor(pickle, *callee) => parse_tensor(pickle, name, arguments),
        _ => bail!("not a tensor"),
    }
}

fn is_tensor(pickle: &Pickle, callee: ValueId) -> bool {
    matches!(pickle.get(callee), PickleValue::Global(f) if f == "torch._utils._rebuild_tensor_v2")
}

/// Reads the arguments storage, offset, shape and strides (`_rebuild_tensor_v2` in PyTorch's
/// `_utils.py`). Further arguments do not affect the values.
fn parse_tensor(pickle: &Pickle, name: &str, arguments: &[ValueId]) -> Result<TensorView> {
    let [storage, offset, shape, strides, ..] = arguments else {
        bail!("tensor with {} arguments, expected at least 4", arguments.len())
    };
    let (storage, dtype) = parse_storage(pickle, *storage)?;
    let shape = parse_sizes(pickle, *shape)?;
    let strides = parse_sizes(pickle, *strides)?;
    let mut expected_stride = 1usize;
    for (size, stride) in shape.iter().zip(&strides).rev() {
        if *size > 1 && *stride != expected_stride {
            bail!("strides {strides:?} of shape {shape:?} are not contiguous");
        }
        expected_stride = expected_stride.checked_mul(*size).context("shape is too large")?;
    }
    if shape.len() != strides.len() {
        bail!("{} sizes but {} strides", shape.len(), strides.len());
    }
    Ok(TensorView {
        name: name.to_owned(),
        storage,
        dtype,
        shape,
        offset: parse_size(pickle, *offset)?,
    })
}

/// Returns name and type of a storage: `('storage', torch.FloatStorage, '0', 'cpu', 12)`.
fn parse_storage(pickle: &Pickle, id: ValueId) -> Result<(String, DType)> {
    let PickleValue::Persistent(id) = pickle.get(id) else {
        bail!("storage is not a persistent id")
    };
    let parts: Vec<&PickleValue> =
        as_tuple(pickle, *id)?.iter().map(|id| pickle.get(*id)).collect();
    let [PickleValue::Text(kind), PickleValue::Global(class), PickleValue::Text(name), ..] =
        parts.as_slice()
    else {
        bail!("storage without type and name")
    };
    let is_plain_name =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if kind != "storage" || !is_plain_name {
        bail!("storage without type and name");
    }
    let dtype = match class.as_str() {
        "torch.FloatStorage" => DType::F32,
        "torch.HalfStorage" => DType::F16,
        "torch.BFloat16Storage" => DType::BF16,
        "torch.DoubleStorage" => DType::F64,
        "torch.LongStorage" => DType::I64,
        "torch.ByteStorage" | "torch.BoolStorage" => DType::U8,
        other => bail!("storage type `{other}` is not supported"),
    };
    Ok((name.clone(), dtype))
}

fn as_tuple(pickle: &Pickle, id: ValueId) -> Result<&[ValueId]> {
    match pickle.get(id) {
        PickleValue::Tuple(items) => Ok(items),
        _ => bail!("expected a tuple"),
    }
}

fn parse_sizes(pickle: &Pickle, id: ValueId) -> Result<Vec<usize>> {
    // `torch.Size` is a call with one tuple.
    let items = match pickle.get(id) {
        PickleValue::Call(_, arguments) => match as_tuple(pickle, *arguments)? {
            [only] => as_tuple(pickle, *only)?,
            _ => bail!("malformed torch.Size"),
        },
        _ => as_tuple(pickle, id)?,
    };
    items.iter().map(|item| parse_size(pickle, *item)).collect()
}

fn parse_size(pickle: &Pickle, id: ValueId) -> Result<usize> {
    match pickle.get(id) {
        PickleValue::Int(n) => usize::try_from(*n).context("size is negative"),
        _ => bail!("size is not a number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn view_outside_its_storage_is_rejected() -> Result<()> {
        let view = TensorView {
            name: "w".to_owned(),
            storage: "0".to_owned(),
            dtype: DType::F16,
            shape: vec![2, 3],
            offset: 1,
        };
        assert_eq!(view.byte_range(14)?, 2..14);
        assert!(view.byte_range(13).is_err());
        let huge = TensorView { shape: vec![usize::MAX, 2], ..view };
        assert!(huge.byte_range(14).is_err());
        Ok(())
    }
}
