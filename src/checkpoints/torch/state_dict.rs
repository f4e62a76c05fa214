//! What a checkpoint's pickle says: which bytes of which storage are which tensor.

use std::ops::Range;

use anyhow::{Context, Result, bail};
use candle::DType;

use super::pickle::{Id, Pickle, PickleValue};

/// A tensor as a view into a storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TensorView {
    /// Its name.
    pub name: String,
    /// The storage's name in the archive.
    pub storage: String,
    /// The type of its values.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Where it begins in the storage, in values.
    offset: usize,
}

impl TensorView {
    /// Its bytes in a storage of `len` bytes.
    pub(super) fn range(&self, len: usize) -> Result<Range<usize>> {
        let each = self.dtype.size_in_bytes();
        let count = self.shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        let place = || {
            let start = self.offset.checked_mul(each)?;
            let end = start.checked_add(count?.checked_mul(each)?)?;
            Some(start..end)
        };
        match place().filter(|range| range.end <= len) {
            Some(range) => Ok(range),
            None => bail!(
                "tensor `{}` of shape {:?} does not fit into its storage of {len} bytes",
                self.name,
                self.shape
            ),
        }
    }
}

/// The tensors of a state dict.
pub(super) fn tensors(bytes: &[u8]) -> Result<Vec<TensorView>> {
    let pickle = Pickle::read(bytes)?;
    let PickleValue::Dict(items) = pickle.root() else {
        bail!("it is no table of tensors")
    };
    let mut views = Vec::new();
    for (key, value) in items {
        let PickleValue::Text(name) = pickle.get(*key) else {
            bail!("a tensor has no name")
        };
        let view = view(&pickle, name, *value).with_context(|| format!("`{name}`"))?;
        views.push(view);
    }
    Ok(views)
}

fn view(pickle: &Pickle, name: &str, value: Id) -> Result<TensorView> {
    let PickleValue::Call(callee, arguments) = pickle.get(value) else {
        bail!("it is no tensor")
    };
    let arguments = tuple(pickle, *arguments)?;
    match pickle.get(*callee) {
        // A parameter's first argument is its tensor, which is not a parameter again.
        PickleValue::Global(f) if f == "torch._utils._rebuild_parameter" => {
            let inner = *arguments.first().context("a parameter without a tensor")?;
            match pickle.get(inner) {
                PickleValue::Call(callee, arguments) if is_tensor(pickle, *callee) => {
                    rebuilt(pickle, name, tuple(pickle, *arguments)?)
                }
                _ => bail!("it is no parameter"),
            }
        }
        _ if is_tensor(pickle, *callee) => rebuilt(pickle, name, arguments),
        _ => bail!("it is no tensor"),
    }
}

fn is_tensor(pickle: &Pickle, callee: Id) -> bool {
    matches!(pickle.get(callee), PickleValue::Global(f) if f == "torch._utils._rebuild_tensor_v2")
}

/// The arguments are storage, offset, shape, strides and more that moves no value
/// (`_rebuild_tensor_v2` in PyTorch's `_utils.py`).
fn rebuilt(pickle: &Pickle, name: &str, arguments: &[Id]) -> Result<TensorView> {
    let [storage, offset, shape, strides, ..] = arguments else {
        bail!("it has {} of the four parts of a tensor", arguments.len())
    };
    let (storage, dtype) = self::storage(pickle, *storage)?;
    let shape = sizes(pickle, *shape)?;
    let strides = sizes(pickle, *strides)?;
    let mut dense = 1usize;
    for (size, stride) in shape.iter().zip(&strides).rev() {
        if *size > 1 && *stride != dense {
            bail!("its strides {strides:?} do not lie as its shape {shape:?} does");
        }
        dense = dense.checked_mul(*size).context("its shape is too large")?;
    }
    if shape.len() != strides.len() {
        bail!("it has {} sizes and {} strides", shape.len(), strides.len());
    }
    Ok(TensorView {
        name: name.to_owned(),
        storage,
        dtype,
        shape,
        offset: size(pickle, *offset)?,
    })
}

/// The name and type of a storage: `('storage', torch.FloatStorage, '0', 'cpu', 12)`.
fn storage(pickle: &Pickle, id: Id) -> Result<(String, DType)> {
    let PickleValue::Persistent(id) = pickle.get(id) else {
        bail!("its storage is not in the archive")
    };
    let parts: Vec<&PickleValue> = tuple(pickle, *id)?
        .iter()
        .map(|id| pickle.get(*id))
        .collect();
    let [
        PickleValue::Text(kind),
        PickleValue::Global(class),
        PickleValue::Text(name),
        ..,
    ] = parts.as_slice()
    else {
        bail!("its storage has no type and name")
    };
    let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if kind != "storage" || !plain {
        bail!("its storage has no type and name");
    }
    let dtype = match class.as_str() {
        "torch.FloatStorage" => DType::F32,
        "torch.HalfStorage" => DType::F16,
        "torch.BFloat16Storage" => DType::BF16,
        "torch.DoubleStorage" => DType::F64,
        "torch.LongStorage" => DType::I64,
        "torch.ByteStorage" | "torch.BoolStorage" => DType::U8,
        other => bail!("its values are of `{other}`, which is not read"),
    };
    Ok((name.clone(), dtype))
}

fn tuple(pickle: &Pickle, id: Id) -> Result<&[Id]> {
    match pickle.get(id) {
        PickleValue::Tuple(items) => Ok(items),
        _ => bail!("a part that should be a tuple is none"),
    }
}

fn sizes(pickle: &Pickle, id: Id) -> Result<Vec<usize>> {
    // `torch.Size` is a tuple that is called.
    let items = match pickle.get(id) {
        PickleValue::Call(_, arguments) => match tuple(pickle, *arguments)? {
            [only] => tuple(pickle, *only)?,
            _ => bail!("a size that is none"),
        },
        _ => tuple(pickle, id)?,
    };
    items.iter().map(|item| size(pickle, *item)).collect()
}

fn size(pickle: &Pickle, id: Id) -> Result<usize> {
    match pickle.get(id) {
        PickleValue::Int(n) => usize::try_from(*n).context("a size is negative"),
        _ => bail!("a size is no number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_beyond_its_storage_is_an_error() -> Result<()> {
        let view = TensorView {
            name: "w".to_owned(),
            storage: "0".to_owned(),
            dtype: DType::F16,
            shape: vec![2, 3],
            offset: 1,
        };
        assert_eq!(view.range(14)?, 2..14);
        assert!(view.range(13).is_err());
        let huge = TensorView {
            shape: vec![usize::MAX, 2],
            ..view
        };
        assert!(huge.range(14).is_err());
        Ok(())
    }
}
