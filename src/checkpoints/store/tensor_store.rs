//! Store of the tensors of all members, with equal tensors interned.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use acem3_kernels::dequantize_rows;
use anyhow::{Context, Result, bail};
use candle::quantized::{GgmlDType, QStorage, QTensor};
use candle::{DType, Device, Storage, Tensor};

use super::encoding::TensorEncoding;
use crate::support::device::Placement;
use crate::support::digest::Digest;

/// Rows of a quantised matrix that are checked at once.
const ROWS: usize = 256;

/// Identity of a tensor: content hash, encoding and shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TensorIdentity {
    /// Hash of the bytes in the file.
    pub digest: Digest,
    /// Encoding in the file.
    pub encoding: TensorEncoding,
    /// Shape.
    pub shape: Vec<usize>,
}

impl TensorIdentity {
    /// Returns the number of values.
    pub(crate) fn parameters(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns the size in the file in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.encoding.bytes(&self.shape).unwrap_or(0)
    }
}

/// A tensor with its identity and file.
#[derive(Clone, Debug)]
pub(crate) struct StoredTensor {
    /// Content hash, encoding and shape.
    pub identity: Arc<TensorIdentity>,
    /// Values: matrices in the dtype of the store, other tensors in f32; quantised matrices on the CPU
    /// as the bytes of their rows.
    pub values: Tensor,
    /// Name of its file for messages.
    pub file: Arc<str>,
}

/// Interned tensors of all members.
pub(crate) struct TensorStore {
    place: Placement,
    kept: HashMap<Arc<TensorIdentity>, Tensor>,
}

impl TensorStore {
    /// Creates an empty store for a device and dtype.
    pub(crate) fn new(place: &Placement) -> Self {
        Self {
            place: place.clone(),
            kept: HashMap::new(),
        }
    }

    /// Interns a tensor: converts the bytes of the file unless an equal tensor is stored.
    pub(crate) fn keep(
        &mut self,
        (file, name): (&Arc<str>, &str),
        bytes: &[u8],
        encoding: impl Into<TensorEncoding>,
        shape: &[usize],
    ) -> Result<StoredTensor> {
        let encoding = encoding.into();
        let identity = Arc::new(TensorIdentity {
            digest: Digest::of(bytes),
            encoding,
            shape: shape.to_vec(),
        });
        let values = if let Some(values) = self.kept.get(&identity) {
            values.clone()
        } else {
            let context = || format!("tensor `{name}`");
            let values = match (encoding, shape) {
                (TensorEncoding::Blocks(blocks), &[rows, columns])
                    if self.place.device.is_cpu() =>
                {
                    quantised_rows(name, bytes, blocks, (rows, columns)).with_context(context)?
                }
                _ => {
                    let values = values(bytes, encoding, shape).with_context(context)?;
                    check_finite(name, &values)?;
                    self.narrowed(name, values)?.to_device(&self.place.device)?
                }
            };
            self.kept.insert(identity.clone(), values.clone());
            values
        };
        Ok(StoredTensor {
            identity,
            values,
            file: file.clone(),
        })
    }

    /// Converts a matrix to the dtype of the store. Other tensors are unchanged.
    fn narrowed(&self, name: &str, values: Tensor) -> Result<Tensor> {
        if values.rank() != 2 || self.place.dtype == values.dtype() {
            return Ok(values);
        }
        let narrow = values.to_dtype(self.place.dtype)?;
        check_finite(name, &narrow.to_dtype(DType::F32)?).with_context(|| {
            format!(
                "out of range of {}\nhint: use --dtype bf16 or f32",
                self.place.dtype.as_str()
            )
        })?;
        Ok(narrow)
    }
}

/// Returns the rows of a quantised matrix as bytes, after a check that all values are finite.
///
/// # Shapes
/// `(rows, bytes per row)`.
fn quantised_rows(
    name: &str,
    bytes: &[u8],
    blocks: GgmlDType,
    (rows, columns): (usize, usize),
) -> Result<Tensor> {
    if TensorEncoding::Blocks(blocks).bytes(&[rows, columns]) != Some(bytes.len())
        || bytes.is_empty()
    {
        bail!(
            "{} bytes do not fit {rows} rows of {columns} values",
            bytes.len()
        );
    }
    let kept = Tensor::from_slice(bytes, (rows, bytes.len() / rows), &Device::Cpu)?;
    for start in (0..rows).step_by(ROWS) {
        let some = kept.narrow(0, start, ROWS.min(rows - start))?;
        check_finite(name, &dequantize_rows(&some, blocks, columns)?)?;
    }
    Ok(kept)
}

/// Returns the values of a tensor in f32, on the CPU.
fn values(bytes: &[u8], encoding: TensorEncoding, shape: &[usize]) -> Result<Tensor> {
    if encoding.bytes(shape) != Some(bytes.len()) {
        bail!(
            "{} bytes do not fit shape {shape:?} in {}",
            bytes.len(),
            encoding.name()
        );
    }
    let values = match encoding {
        TensorEncoding::Plain(dtype @ (DType::F32 | DType::F16 | DType::BF16 | DType::F64)) => {
            Tensor::from_raw_buffer(bytes, dtype, shape, &Device::Cpu)?.to_dtype(DType::F32)?
        }
        TensorEncoding::Blocks(blocks) => {
            let bytes = Cow::Borrowed(bytes);
            let storage = QStorage::from_data(bytes, &Device::Cpu, blocks)?;
            QTensor::new(storage, shape)?.dequantize(&Device::Cpu)?
        }
        TensorEncoding::Plain(dtype) => bail!(
            "type {} is not supported, expected f32, f16, bf16 or f64\n\
             hint: use the original checkpoint, without quantisation",
            dtype.as_str()
        ),
    };
    Ok(values)
}

/// Returns an error if a tensor contains values that are not finite.
fn check_finite(name: &str, values: &Tensor) -> Result<()> {
    let (storage, _) = values.storage_and_layout();
    let Storage::Cpu(storage) = &*storage else {
        return Ok(());
    };
    let values = storage.as_slice::<f32>()?;
    let wrong = values.iter().filter(|value| !value.is_finite()).count();
    if wrong > 0 {
        bail!(
            "tensor `{name}`: {wrong} of {} values are not finite\n\
             hint: the file is damaged or its training diverged; download it again",
            values.len()
        );
    }
    Ok(())
}
