//! Store of the tensors of all members, with equal tensors interned.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use acem3_kernels::{Matrix, ROW_MULTIPLE, RoundedWeight, arrange_blocks, dequantize_rows};
use anyhow::{Context, Result, bail};
use candle::quantized::{GgmlDType, QStorage, QTensor};
use candle::{DType, Device, Storage, Tensor};

use super::encoding::TensorEncoding;
use crate::support::device::Placement;
use crate::support::digest::Digest;

/// Number of rows of a quantised matrix that are checked in one step.
const ROWS_PER_CHECK: usize = 256;

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
    pub(crate) fn parameter_count(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns the size in the file in bytes.
    pub(crate) fn byte_len(&self) -> usize {
        self.encoding.byte_len(&self.shape).unwrap_or(0)
    }
}

/// A tensor with its identity and file.
#[derive(Clone, Debug)]
pub(crate) struct StoredTensor {
    /// Content hash, encoding and shape.
    pub identity: Arc<TensorIdentity>,
    /// Values: matrices in the dtype of the store, other tensors in f32; quantised matrices on the
    /// CPU as arranged blocks ([`arrange_blocks`]).
    pub values: Tensor,
    /// Type of the blocks that the bytes contain.
    pub blocks: Option<GgmlDType>,
    /// Name of its file for messages.
    pub file: Arc<str>,
}

impl StoredTensor {
    /// Returns the values in f32. Those of a quantised matrix are dequantised.
    pub(crate) fn to_f32(&self) -> Result<Tensor> {
        let (Some(block_type), &[rows, columns]) = (self.blocks, self.identity.shape.as_slice())
        else {
            return Ok(self.values.to_dtype(DType::F32)?);
        };
        let bytes = self.values.clone();
        let all_rows: Vec<u32> = (0..u32::try_from(rows)?).collect();
        Ok(Matrix::Blocks { bytes, block_type, shape: (rows, columns) }.select_rows(&all_rows)?)
    }
}

/// Hash and tensors of a file.
#[derive(Debug)]
pub(crate) struct FileTensors {
    /// Hash of the whole file.
    pub digest: Digest,
    /// Tensors with their names.
    pub tensors: Vec<(String, StoredTensor)>,
}

/// A tensor as the bytes in its file.
pub(crate) struct EncodedTensor<'a> {
    /// Name of the file for messages.
    pub file: &'a Arc<str>,
    /// Name of the tensor for messages.
    pub name: &'a str,
    /// Bytes in the file.
    pub bytes: &'a [u8],
    /// Encoding in the file.
    pub encoding: TensorEncoding,
    /// Shape.
    pub shape: &'a [usize],
}

/// Interned tensors of all members.
pub(crate) struct TensorStore {
    placement: Placement,
    tensors: HashMap<Arc<TensorIdentity>, TensorValues>,
}

/// Values of a tensor, or the bytes of its blocks.
#[derive(Clone)]
struct TensorValues {
    values: Tensor,
    blocks: Option<GgmlDType>,
}

impl TensorStore {
    /// Creates an empty store for a device and dtype.
    pub(crate) fn new(placement: &Placement) -> Self {
        Self { placement: placement.clone(), tensors: HashMap::new() }
    }

    /// Interns a tensor: converts the bytes of the file unless an equal tensor is stored.
    pub(crate) fn intern(&mut self, tensor: &EncodedTensor) -> Result<StoredTensor> {
        let EncodedTensor { file, name, bytes, encoding, shape } = *tensor;
        let identity = Arc::new(TensorIdentity {
            digest: Digest::sha256(bytes),
            encoding,
            shape: shape.to_vec(),
        });
        let stored = if let Some(stored) = self.tensors.get(&identity) {
            stored.clone()
        } else {
            let stored = self.read_values(tensor).with_context(|| format!("tensor `{name}`"))?;
            self.tensors.insert(identity.clone(), stored.clone());
            stored
        };
        let TensorValues { values, blocks } = stored;
        Ok(StoredTensor { identity, values, blocks, file: file.clone() })
    }

    /// Converts the bytes of a tensor to the form in which the store keeps it.
    fn read_values(&self, tensor: &EncodedTensor) -> Result<TensorValues> {
        let EncodedTensor { name, bytes, encoding, shape, .. } = *tensor;
        if let (TensorEncoding::Blocks(blocks), &[rows, columns]) = (encoding, shape)
            && self.placement.device.is_cpu()
        {
            let values = checked_quantised_rows(name, bytes, blocks, (rows, columns))?;
            return Ok(TensorValues { values, blocks: Some(blocks) });
        }
        let Placement { dtype, keeps_bf16, .. } = self.placement;
        if encoding == TensorEncoding::Plain(DType::BF16)
            && shape.len() == 2
            && (keeps_bf16 || dtype == DType::BF16)
        {
            check_len(bytes, encoding, shape)?;
            let values = Tensor::from_raw_buffer(bytes, DType::BF16, shape, &Device::Cpu)?;
            check_finite_bf16(name, &values)?;
            let values = if keeps_bf16 { values } else { self.to_device(&values)? };
            return Ok(TensorValues { values, blocks: None });
        }
        let values = decode_values(bytes, encoding, shape)?;
        check_finite(name, &values)?;
        if let &[rows, columns] = shape
            && let Some(blocks) = self.blocks_of(name, (rows, columns))
        {
            let values = quantise_rows(&values, blocks, (rows, columns))?;
            return Ok(TensorValues { values, blocks: Some(blocks) });
        }
        let values = self.to_device(&self.to_store_dtype(name, values)?)?;
        Ok(TensorValues { values, blocks: None })
    }

    /// Copies values to the device of the store. Matrices whose inputs are rounded get their final values
    /// here, so that equal ones share memory.
    fn to_device(&self, values: &Tensor) -> Result<Tensor> {
        if values.dtype() == DType::BF16 && self.placement.rounds_inputs() {
            return Ok(RoundedWeight::new(values)?.values().clone());
        }
        Ok(values.to_device(&self.placement.device)?)
    }

    /// Returns the blocks that `--dtype` selects for a matrix.
    fn blocks_of(&self, name: &str, shape: (usize, usize)) -> Option<GgmlDType> {
        let blocks = self.placement.blocks?;
        if is_image_part(name) {
            return is_quantised_in_tower(name, shape).then_some(GgmlDType::Q8_0);
        }
        // Names in transformers, then in GGUF.
        let is_layer = name.contains("layers.") && name.ends_with("_proj.weight")
            || name.starts_with("blk.") && name.ends_with(".weight");
        let tables =
            ["embed_tokens.weight", "lm_head.weight", "token_embd.weight", "output.weight"];
        if is_layer {
            Some(blocks)
        } else if tables.iter().any(|table| name.ends_with(table)) {
            // Errors of the output layer reach the scores directly.
            Some(GgmlDType::Q8_0)
        } else {
            None
        }
    }

    /// Converts a matrix to the dtype of the store. Other tensors are unchanged.
    fn to_store_dtype(&self, name: &str, values: Tensor) -> Result<Tensor> {
        if values.rank() != 2 || self.placement.dtype == values.dtype() {
            return Ok(values);
        }
        let converted = values.to_dtype(self.placement.dtype)?;
        let check = if converted.dtype() == DType::BF16 {
            check_finite_bf16(name, &converted)
        } else {
            check_finite(name, &converted.to_dtype(DType::F32)?)
        };
        check.with_context(|| {
            format!(
                "out of range of {}\nhint: use --dtype bf16 or f32",
                self.placement.dtype.as_str()
            )
        })?;
        Ok(converted)
    }
}

/// Returns true if a tensor belongs to the vision tower or the projector.
fn is_image_part(name: &str) -> bool {
    // `encoder.` is the prefix of a separate DINOv2 tower.
    ["vision", "visual", "tower", "projector"].iter().any(|part| name.contains(part))
        || ["v.", "mm.", "encoder."].iter().any(|prefix| name.starts_with(prefix))
}

/// Returns true if a matrix of the vision tower or the projector is quantised. These are the matrices in
/// the tower's layers whose rows are multiples of 32 values. Position tables and the projector are small.
fn is_quantised_in_tower(name: &str, (rows, columns): (usize, usize)) -> bool {
    let is_in_layer =
        ["layers.", "layer.", "blocks.", "blk."].iter().any(|part| name.contains(part));
    // The tower splits a fused projection into three matrices.
    let is_fused = name.contains("qkv") || name.contains("in_proj");
    is_in_layer
        && name.ends_with("weight")
        && columns.is_multiple_of(GgmlDType::Q8_0.block_size())
        && (!is_fused || rows.is_multiple_of(3 * ROW_MULTIPLE))
}

/// Returns the arranged blocks of a quantised matrix, after a check that all values are finite.
///
/// # Shapes
/// `(rows, bytes per row)`, for `Q8_0` with rows up to a multiple of 16.
fn checked_quantised_rows(
    name: &str,
    bytes: &[u8],
    blocks: GgmlDType,
    (rows, columns): (usize, usize),
) -> Result<Tensor> {
    if TensorEncoding::Blocks(blocks).byte_len(&[rows, columns]) != Some(bytes.len())
        || bytes.is_empty()
    {
        bail!("{} bytes do not fit {rows} rows of {columns} values", bytes.len());
    }
    let rows_of_bytes = Tensor::from_slice(bytes, (rows, bytes.len() / rows), &Device::Cpu)?;
    for start in (0..rows).step_by(ROWS_PER_CHECK) {
        let part = rows_of_bytes.narrow(0, start, ROWS_PER_CHECK.min(rows - start))?;
        check_finite(name, &dequantize_rows(&part, blocks, columns)?)?;
    }
    Ok(arrange_blocks(&rows_of_bytes, blocks)?)
}

/// Quantises a matrix and returns its arranged blocks.
///
/// # Shapes
/// `(rows, columns)` to `(rows, bytes per row)`, for `Q8_0` with rows up to a multiple of 16.
fn quantise_rows(
    values: &Tensor,
    blocks: GgmlDType,
    (rows, columns): (usize, usize),
) -> Result<Tensor> {
    let block_size = blocks.block_size();
    if !columns.is_multiple_of(block_size) {
        let hint = if blocks == GgmlDType::Q8_0 { "f32 or bf16" } else { "q8_0" };
        bail!(
            "rows of {columns} values cannot be stored in {}, which takes multiples of {block_size}\n\
             hint: use --dtype {hint}",
            TensorEncoding::Blocks(blocks).name()
        );
    }
    let bytes = QTensor::quantize(values, blocks)?.data()?.into_owned();
    let row_bytes = bytes.len() / rows.max(1);
    let bytes = Tensor::from_vec(bytes, (rows, row_bytes), &Device::Cpu)?;
    Ok(arrange_blocks(&bytes, blocks)?)
}

/// Returns the values of a tensor in f32, on the CPU.
fn decode_values(bytes: &[u8], encoding: TensorEncoding, shape: &[usize]) -> Result<Tensor> {
    check_len(bytes, encoding, shape)?;
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

/// Returns an error if a tensor of this encoding and shape has another number of bytes.
fn check_len(bytes: &[u8], encoding: TensorEncoding, shape: &[usize]) -> Result<()> {
    if encoding.byte_len(shape) == Some(bytes.len()) {
        return Ok(());
    }
    bail!("{} bytes do not fit shape {shape:?} in {}", bytes.len(), encoding.name())
}

/// Returns an error if a tensor in bf16 on the CPU contains values that are not finite.
fn check_finite_bf16(name: &str, values: &Tensor) -> Result<()> {
    let (storage, _) = values.storage_and_layout();
    let Storage::Cpu(storage) = &*storage else {
        return Ok(());
    };
    let values = storage.as_slice::<half::bf16>()?;
    let invalid = values.iter().filter(|value| !value.is_finite()).count();
    report_invalid(name, invalid, values.len())
}

/// Returns an error if a tensor contains values that are not finite.
fn check_finite(name: &str, values: &Tensor) -> Result<()> {
    let (storage, _) = values.storage_and_layout();
    let Storage::Cpu(storage) = &*storage else {
        return Ok(());
    };
    let values = storage.as_slice::<f32>()?;
    let invalid = values.iter().filter(|value| !value.is_finite()).count();
    report_invalid(name, invalid, values.len())
}

fn report_invalid(name: &str, invalid: usize, len: usize) -> Result<()> {
    if invalid > 0 {
        bail!(
            "tensor `{name}`: {invalid} of {len} values are not finite\n\
             hint: the file is damaged or its training diverged; download it again"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_quantised_matrices_are_close_to_the_file() {
        let placement = Placement { blocks: Some(GgmlDType::Q8_0), ..Placement::cpu() };
        let values: Vec<f32> = (0..40 * 64).map(|i| (i as f32 * 0.37).sin()).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let tensor = EncodedTensor {
            file: &"tower.safetensors".into(),
            name: "vision_model.encoder.layers.0.mlp.fc1.weight",
            bytes: &bytes,
            encoding: TensorEncoding::Plain(DType::F32),
            shape: &[40, 64],
        };
        let stored = TensorStore::new(&placement).intern(&tensor).unwrap();
        assert_eq!(stored.blocks, placement.blocks);
        let restored = stored.to_f32().unwrap().to_vec2::<f32>().unwrap();
        for (restored, value) in restored.iter().flatten().zip(&values) {
            assert!((restored - value).abs() < 0.01, "{restored} for {value}");
        }
    }

    #[test]
    fn dtype_quantises_the_layers_of_decoder_and_tower() {
        let blocks = Some(GgmlDType::Q4K);
        let store = TensorStore::new(&Placement { blocks, ..Placement::cpu() });
        let is = |name: &str, shape: (usize, usize)| store.blocks_of(name, shape);
        let tower = "model.vision_tower.vision_model.encoder.layers.0";
        assert_eq!(is("model.layers.3.mlp.up_proj.weight", (512, 256)), blocks);
        assert_eq!(is("lm_head.weight", (512, 256)), Some(GgmlDType::Q8_0));
        for (name, shape) in [
            (format!("{tower}.mlp.fc1.weight"), (512, 256)),
            (format!("{tower}.self_attn.q_proj.weight"), (72, 64)),
            ("visual.transformer.resblocks.0.attn.in_proj_weight".to_owned(), (192, 64)),
            ("visual.trunk.blocks.0.attn.qkv.weight".to_owned(), (192, 64)),
            ("encoder.layer.0.attention.attention.query.weight".to_owned(), (64, 64)),
            ("v.blk.0.ffn_up.weight".to_owned(), (256, 64)),
        ] {
            assert_eq!(is(&name, shape), Some(GgmlDType::Q8_0), "{name}");
        }
        for (name, shape) in [
            // Rows of 134.5 blocks, and a fused projection of three matrices of 4.5 panels.
            (format!("{tower}.mlp.fc2.weight"), (1152, 4304)),
            ("visual.trunk.blocks.0.attn.qkv.weight".to_owned(), (216, 64)),
            ("model.vision_tower.embeddings.position_embedding.weight".to_owned(), (577, 1024)),
            ("model.mm_projector.0.weight".to_owned(), (512, 256)),
        ] {
            assert_eq!(is(&name, shape), None, "{name}");
        }
    }
}
