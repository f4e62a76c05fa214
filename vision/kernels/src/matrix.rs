//! Weight matrices: dense, or in the quantised blocks of a GGUF file.

use std::borrow::Cow;

use candle::quantized::{GgmlDType, QStorage, QTensor};
use candle::{DType, Device, Result, Tensor, bail};
use candle_nn::VarBuilder;
use rayon::prelude::*;

use crate::linear::linear;
use crate::row_product::multiply_by_rows;

/// Values that a product dequantises at a time: 1 MB in f32, which fits into a core's cache.
const CHUNK_VALUES: usize = 1 << 18;

/// A weight matrix of shape (`c_out`, `c_in`).
#[derive(Clone, Debug)]
pub enum Matrix {
    /// Floating-point values.
    Dense(Tensor),
    /// Quantised blocks. Products dequantise a few rows at a time, so the matrix takes no more
    /// memory than in its file. Results are bit-identical to those of the dequantised matrix.
    Blocks {
        /// Packed rows, (`c_out`, bytes per row) of `u8`.
        bytes: Tensor,
        /// Type of the blocks.
        block_type: GgmlDType,
        /// Values per row (`c_in`).
        columns: usize,
    },
}

/// Supported block types, and the suffix of the names of tensors in that type.
pub const BLOCK_TYPES: [(GgmlDType, &str); 10] = [
    (GgmlDType::Q4_0, "q4_0"),
    (GgmlDType::Q4_1, "q4_1"),
    (GgmlDType::Q5_0, "q5_0"),
    (GgmlDType::Q5_1, "q5_1"),
    (GgmlDType::Q8_0, "q8_0"),
    (GgmlDType::Q2K, "q2_k"),
    (GgmlDType::Q3K, "q3_k"),
    (GgmlDType::Q4K, "q4_k"),
    (GgmlDType::Q5K, "q5_k"),
    (GgmlDType::Q6K, "q6_k"),
];

impl Matrix {
    /// Loads the tensor `name`, or its blocks from `name` with a suffix of [`BLOCK_TYPES`].
    pub fn load(vb: &VarBuilder, (rows, columns): (usize, usize), name: &str) -> Result<Self> {
        for (block_type, suffix) in BLOCK_TYPES {
            let packed = format!("{name}.{suffix}");
            if vb.contains_tensor(&packed) {
                if columns % block_type.block_size() != 0 {
                    bail!(
                        "`{name}`: rows have {columns} values, expected a multiple of {}, the size of a \
                         {suffix} block",
                        block_type.block_size()
                    );
                }
                let row_bytes = columns / block_type.block_size() * block_type.type_size();
                let bytes = vb.get((rows, row_bytes), &packed)?;
                return Ok(Self::Blocks { bytes, block_type, columns });
            }
        }
        vb.get((rows, columns), name).map(Self::Dense)
    }

    /// Computes `x · matrixᵀ + bias`, like [`linear`].
    ///
    /// # Shapes
    /// `x` (n, `c_in`), `bias` (`c_out`) → (n, `c_out`).
    pub fn linear(&self, x: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        let (bytes, block_type, columns) = match self {
            Self::Dense(weight) => return linear(x, weight, bias),
            Self::Blocks { bytes, block_type, columns } => (bytes, *block_type, *columns),
        };
        let y = match multiply_by_rows(x, bytes, Some(block_type))? {
            Some(y) => y,
            None => Self::multiply_blocks(x, bytes, block_type, columns)?,
        };
        match bias {
            Some(bias) => y.broadcast_add(bias),
            None => Ok(y),
        }
    }

    /// Computes `x · matrixᵀ`, a few rows of the matrix at a time.
    fn multiply_blocks(
        x: &Tensor,
        bytes: &Tensor,
        block_type: GgmlDType,
        columns: usize,
    ) -> Result<Tensor> {
        let rows = bytes.dim(0)?;
        let chunk_rows = (CHUNK_VALUES / columns.max(1)).max(1);
        // Chunks of nearly equal size, because the matrix kernel adds in another order for a single
        // row of weights.
        let chunks = rows.div_ceil(chunk_rows);
        let products = (0..chunks)
            .map(|chunk| {
                let start = rows * chunk / chunks;
                let packed = bytes.narrow(0, start, rows * (chunk + 1) / chunks - start)?;
                linear(x, &dequantize_rows(&packed, block_type, columns)?, None)
            })
            .collect::<Result<Vec<_>>>()?;
        Tensor::cat(&products, 1)
    }

    /// Looks up rows, as an embedding table does. The result is in f32.
    ///
    /// # Shapes
    /// n indices → (n, `c_in`).
    pub fn select_rows(&self, indices: &[u32]) -> Result<Tensor> {
        match self {
            Self::Dense(weight) => {
                let indices = Tensor::new(indices, weight.device())?;
                if weight.track_op() {
                    // Convert first: the gradient of a row that occurs several times then
                    // accumulates in f32.
                    return weight.to_dtype(DType::F32)?.index_select(&indices, 0);
                }
                weight.index_select(&indices, 0)?.to_dtype(DType::F32)
            }
            Self::Blocks { bytes, block_type, columns } => {
                let indices = Tensor::new(indices, bytes.device())?;
                dequantize_rows(&bytes.index_select(&indices, 0)?, *block_type, *columns)
            }
        }
    }
}

/// Dequantises rows of blocks to f32 on the CPU.
///
/// # Shapes
/// (n, bytes per row) → (n, `columns`).
pub fn dequantize_rows(bytes: &Tensor, block_type: GgmlDType, columns: usize) -> Result<Tensor> {
    let rows = bytes.dim(0)?;
    let bytes = bytes.to_dtype(DType::U8)?.flatten_all()?.to_vec1::<u8>()?;
    let row_bytes = bytes.len() / rows.max(1);
    let rows_per_thread = rows.div_ceil(rayon::current_num_threads().max(1)).max(1);
    let parts: Vec<Tensor> = bytes
        .par_chunks((row_bytes * rows_per_thread).max(1))
        .map(|part| {
            let n = part.len() / row_bytes.max(1);
            // The copy is aligned for the block type.
            let storage = QStorage::from_data(Cow::Owned(part.to_vec()), &Device::Cpu, block_type)?;
            QTensor::new(storage, (n, columns))?.dequantize(&Device::Cpu)
        })
        .collect::<Result<_>>()?;
    Tensor::cat(&parts, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Because of this property, keeping weights quantised in memory does not change verdicts.
    #[test]
    fn quantised_and_dequantised_products_are_bit_identical() -> Result<()> {
        // One row more than three chunks, and two chunks of columns for the kernel.
        let (rows, columns) = (385, 2048);
        let values = Tensor::randn(0f32, 1.0, (rows, columns), &Device::Cpu)?;
        let x = Tensor::randn(0f32, 1.0, (70, columns), &Device::Cpu)?;
        let bias = Tensor::randn(0f32, 1.0, rows, &Device::Cpu)?;
        for (block_type, _) in BLOCK_TYPES {
            let packed = QTensor::quantize(&values, block_type)?;
            let dense = Matrix::Dense(packed.dequantize(&Device::Cpu)?);
            let bytes = packed.data()?.into_owned();
            let row_bytes = bytes.len() / rows;
            let bytes = Tensor::from_vec(bytes, (rows, row_bytes), &Device::Cpu)?;
            let packed = Matrix::Blocks { bytes, block_type, columns };
            for n in [1, 2, 5, 37, 70] {
                let batch = x.narrow(0, 70 - n, n)?;
                let want = dense.linear(&batch, Some(&bias))?.to_vec2::<f32>()?;
                let got = packed.linear(&batch, Some(&bias))?.to_vec2::<f32>()?;
                assert!(got == want, "{n} rows of {block_type:?} differ");
            }
            let indices = [299, 3, 3, 0];
            let (want, got) = (dense.select_rows(&indices)?, packed.select_rows(&indices)?);
            assert_eq!(got.to_vec2::<f32>()?, want.to_vec2::<f32>()?);
        }
        Ok(())
    }
}
