//! Where the tensors of all members are kept, equal ones once.

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

/// Rows of blocks that are looked through at once.
const ROWS: usize = 256;

/// What makes two stored tensors the same: bytes, type and shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TensorIdentity {
    /// The hash of the bytes in the file.
    pub digest: Digest,
    /// The type in the file.
    pub encoding: TensorEncoding,
    /// The shape.
    pub shape: Vec<usize>,
}

impl TensorIdentity {
    /// Number of values.
    pub(crate) fn parameters(&self) -> usize {
        self.shape.iter().product()
    }

    /// Bytes in the file.
    pub(crate) fn bytes(&self) -> usize {
        self.encoding.bytes(&self.shape).unwrap_or(0)
    }
}

/// A tensor with where it came from.
#[derive(Clone, Debug)]
pub(crate) struct StoredTensor {
    /// What it is.
    pub identity: Arc<TensorIdentity>,
    /// Its values in f32, whatever the type in the file, or a matrix in the type of the store; a
    /// matrix of blocks on the CPU as the bytes of its rows.
    pub values: Tensor,
    /// The file it was read from, as messages name it.
    pub file: Arc<str>,
}

/// The tensors of all members.
pub(crate) struct TensorStore {
    place: Placement,
    kept: HashMap<Arc<TensorIdentity>, Tensor>,
}

impl TensorStore {
    /// An empty store whose tensors lie at a place.
    pub(crate) fn new(place: &Placement) -> Self {
        Self {
            place: place.clone(),
            kept: HashMap::new(),
        }
    }

    /// Takes in a tensor as a file holds it, unless an equal one is there.
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
                    packed(name, bytes, blocks, (rows, columns)).with_context(context)?
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

    /// A matrix in the type of the store; anything else as it is.
    fn narrowed(&self, name: &str, values: Tensor) -> Result<Tensor> {
        if values.rank() != 2 || self.place.dtype == values.dtype() {
            return Ok(values);
        }
        let narrow = values.to_dtype(self.place.dtype)?;
        check_finite(name, &narrow.to_dtype(DType::F32)?).with_context(|| {
            format!(
                "in {} it does not fit\nhint: use --dtype bf16 or f32",
                self.place.dtype.as_str()
            )
        })?;
        Ok(narrow)
    }
}

/// The rows of a matrix of blocks as they are, found to hold numbers a few rows at a time.
///
/// # Shapes
/// `(rows, bytes of a row)`.
fn packed(
    name: &str,
    bytes: &[u8],
    blocks: GgmlDType,
    (rows, columns): (usize, usize),
) -> Result<Tensor> {
    if TensorEncoding::Blocks(blocks).bytes(&[rows, columns]) != Some(bytes.len())
        || bytes.is_empty()
    {
        bail!(
            "{} bytes are not {rows} rows of {columns} values",
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

/// The values of a tensor in f32, on the CPU.
fn values(bytes: &[u8], encoding: TensorEncoding, shape: &[usize]) -> Result<Tensor> {
    if encoding.bytes(shape) != Some(bytes.len()) {
        bail!(
            "{} bytes are not those of the shape {shape:?} in {}",
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
            "it is of type {}, expected f32, f16 or bf16\n\
             hint: quantised weights of this kind are not read; use the original checkpoint",
            dtype.as_str()
        ),
    };
    Ok(values)
}

/// An error when a tensor holds values that are no numbers: whatever is computed with them is none.
fn check_finite(name: &str, values: &Tensor) -> Result<()> {
    let (storage, _) = values.storage_and_layout();
    let Storage::Cpu(storage) = &*storage else {
        return Ok(());
    };
    let values = storage.as_slice::<f32>()?;
    let wrong = values.iter().filter(|value| !value.is_finite()).count();
    if wrong > 0 {
        bail!(
            "tensor `{name}` holds {wrong} of {} values that are not finite numbers\n\
             hint: the file is damaged or the training that wrote it diverged; fetch it again",
            values.len()
        );
    }
    Ok(())
}
