//! Weight matrices: dense, or in the quantised blocks of a GGUF file.

use std::borrow::Cow;

use candle::quantized::{GgmlDType, QStorage, QTensor};
use candle::{DType, Device, Result, Tensor, bail};
use candle_nn::VarBuilder;
use rayon::prelude::*;

use crate::byte_product::{
    PANEL_ROWS, arranged_shape, has_byte_products, multiply_by_panels, select_panel_rows,
};
use crate::linear::linear;
use crate::matmul::matmul_transposed;
use crate::row_product::{WeightOrder, multiply_by_rows};
use crate::tile_product::{RoundedWeight, multiply_rounded};

/// Values that a product dequantises at a time: 1 MB in f32, which fits into a core's cache.
const CHUNK_VALUES: usize = 1 << 18;

/// A weight matrix of shape (`c_out`, `c_in`).
#[derive(Clone, Debug)]
pub enum Matrix {
    /// Floating-point values.
    Dense(Tensor),
    /// Values in bf16 on the CPU. Products round their inputs to bf16, and use the matrix unit of a
    /// processor with AMX. They are not differentiable.
    Rounded(RoundedWeight),
    /// Quantised blocks, in the order of [`arrange_blocks`](crate::arrange_blocks). The matrix takes
    /// about the memory of its file. Products with `Q8_0` and `Q4K` blocks are computed with 8-bit
    /// integers. Those with other blocks dequantise a few rows at a time, and are bit-identical to
    /// those of the dequantised matrix.
    Blocks {
        /// Packed rows, (`c_out`, bytes per row) of `u8`, or panels.
        bytes: Tensor,
        /// Type of the blocks.
        block_type: GgmlDType,
        /// Number of rows and values per row (`c_out`, `c_in`).
        shape: (usize, usize),
    },
}

/// Suffix of the names of tensors that [`Matrix::load`] loads as [`Matrix::Rounded`].
pub const ROUNDED_SUFFIX: &str = "rounded";

/// For a quantised matrix, the first row and the number of rows of [`Matrix::narrow`] are multiples of
/// this.
pub const ROW_MULTIPLE: usize = PANEL_ROWS;

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
    /// Loads the tensor `name`, or its blocks from `name` with a suffix of [`BLOCK_TYPES`], or its
    /// values from `name` with [`ROUNDED_SUFFIX`].
    pub fn load(vb: &VarBuilder, shape: (usize, usize), name: &str) -> Result<Self> {
        match Self::load_converted(vb, shape, name)? {
            Some(matrix) => Ok(matrix),
            None => vb.get(shape, name).map(Self::Dense),
        }
    }

    /// Loads the tensor `name` with a suffix of [`BLOCK_TYPES`] or with [`ROUNDED_SUFFIX`]: a matrix that
    /// is quantised or rounds its inputs. Returns `None` if there is none.
    pub fn load_converted(
        vb: &VarBuilder,
        (rows, columns): (usize, usize),
        name: &str,
    ) -> Result<Option<Self>> {
        let rounded = format!("{name}.{ROUNDED_SUFFIX}");
        if vb.contains_tensor(&rounded) {
            let values = vb.get((rows, columns), &rounded)?;
            return Ok(Some(Self::Rounded(RoundedWeight::new(&values)?)));
        }
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
                let bytes = vb.get(arranged_shape((rows, columns), block_type), &packed)?;
                return Ok(Some(Self::Blocks { bytes, block_type, shape: (rows, columns) }));
            }
        }
        Ok(None)
    }

    /// Returns `count` rows from `start` on.
    ///
    /// # Errors
    ///
    /// The matrix has fewer rows, or is quantised and `start` or `count` is not a multiple of
    /// [`ROW_MULTIPLE`].
    pub fn narrow(&self, start: usize, count: usize) -> Result<Self> {
        match self {
            Self::Dense(weight) => weight.narrow(0, start, count).map(Self::Dense),
            Self::Rounded(weight) => weight.narrow(start, count).map(Self::Rounded),
            Self::Blocks { bytes, block_type, shape: (rows, columns) } => {
                let is_whole =
                    start.is_multiple_of(ROW_MULTIPLE) && count.is_multiple_of(ROW_MULTIPLE);
                if !is_whole || start + count > *rows {
                    bail!(
                        "cannot select rows {start} to {} of a quantised matrix of {rows} rows of \
                         {columns} values",
                        start + count
                    );
                }
                let (block_type, shape) = (*block_type, (count, *columns));
                Ok(Self::Blocks { bytes: bytes.narrow(0, start, count)?, block_type, shape })
            }
        }
    }

    /// Returns the type and the device of products without conversion: those of the values, or f32
    /// for blocks.
    pub fn placement(&self) -> (DType, Device) {
        match self {
            Self::Dense(weight) => (weight.dtype(), weight.device().clone()),
            Self::Rounded(_) => (DType::F32, Device::Cpu),
            Self::Blocks { bytes, .. } => (DType::F32, bytes.device().clone()),
        }
    }

    /// Computes `x · matrixᵀ + bias`, like [`linear`].
    ///
    /// # Shapes
    /// `x` (n, `c_in`), `bias` (`c_out`) → (n, `c_out`).
    pub fn linear(&self, x: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        let (bytes, block_type, shape) = match self {
            Self::Dense(weight) => return linear(x, weight, bias),
            Self::Rounded(weight) => return with_bias(multiply_rounded(x, weight)?, bias),
            Self::Blocks { bytes, block_type, shape } => (bytes, *block_type, *shape),
        };
        let y = if has_byte_products(block_type) {
            multiply_by_panels(x, bytes, block_type, shape)?
        } else if let Some(y) = multiply_by_rows(x, bytes, WeightOrder::Blocks(block_type))? {
            y
        } else {
            Self::multiply_blocks(x, bytes, block_type, shape.1)?
        };
        with_bias(y, bias)
    }

    /// Computes `x · matrixᵀ`, differentiable if the matrix is dense.
    ///
    /// # Shapes
    /// `x` (n, `c_in`) → (n, `c_out`).
    pub fn multiply(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Dense(weight) => matmul_transposed(x, weight),
            matrix => matrix.linear(x, None),
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
            Self::Rounded(weight) => Self::Dense(weight.values().clone()).select_rows(indices),
            Self::Dense(weight) => {
                let indices = Tensor::new(indices, weight.device())?;
                if weight.track_op() {
                    // Convert first: the gradient of a row that occurs several times then
                    // accumulates in f32.
                    return weight.to_dtype(DType::F32)?.index_select(&indices, 0);
                }
                weight.index_select(&indices, 0)?.to_dtype(DType::F32)
            }
            Self::Blocks { bytes, block_type, shape } if has_byte_products(*block_type) => {
                select_panel_rows(bytes, *block_type, *shape, indices)
            }
            Self::Blocks { bytes, block_type, shape } => {
                let indices = Tensor::new(indices, bytes.device())?;
                dequantize_rows(&bytes.index_select(&indices, 0)?, *block_type, shape.1)
            }
        }
    }
}

/// Adds a bias to each row.
fn with_bias(y: Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    match bias {
        Some(bias) => y.broadcast_add(bias),
        None => Ok(y),
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
    use crate::byte_product::arrange_blocks;
    use crate::tests::random_tensor;

    fn quantised(values: &Tensor, block_type: GgmlDType) -> Result<(Matrix, Matrix)> {
        let shape = values.dims2()?;
        let packed = QTensor::quantize(values, block_type)?;
        let dense = Matrix::Dense(packed.dequantize(&Device::Cpu)?);
        let bytes = packed.data()?.into_owned();
        let row_bytes = bytes.len() / shape.0;
        let bytes = Tensor::from_vec(bytes, (shape.0, row_bytes), &Device::Cpu)?;
        let bytes = arrange_blocks(&bytes, block_type)?;
        Ok((dense, Matrix::Blocks { bytes, block_type, shape }))
    }

    #[test]
    fn rows_of_a_quantised_matrix_can_be_selected() -> Result<()> {
        let values = random_tensor(&[56, 256], 1);
        let x = random_tensor(&[3, 256], 2);
        for (block_type, _) in BLOCK_TYPES {
            let (_, packed) = quantised(&values, block_type)?;
            let expected = packed.linear(&x, None)?.narrow(1, 16, 32)?.to_vec2::<f32>()?;
            let selected = packed.narrow(16, 32)?.linear(&x, None)?.to_vec2::<f32>()?;
            assert!(selected == expected, "{block_type:?}");
            assert!(packed.narrow(8, 16).is_err() && packed.narrow(48, 16).is_err());
        }
        Ok(())
    }

    #[test]
    fn quantised_and_dequantised_products_are_bit_identical() -> Result<()> {
        // One row more than three chunks, and two chunks of columns for the kernel.
        let (rows, columns) = (385, 2048);
        let values = random_tensor(&[rows, columns], 3);
        let x = random_tensor(&[70, columns], 4);
        let bias = random_tensor(&[rows], 5);
        for (block_type, _) in BLOCK_TYPES {
            let (dense, packed) = quantised(&values, block_type)?;
            let exact = !has_byte_products(block_type);
            for n in [1, 2, 5, 37, 70].into_iter().filter(|_| exact) {
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

    /// The input is rounded to 8 bits, so products differ from those of the dequantised matrix. They
    /// do not depend on the batch.
    #[test]
    fn byte_products_are_close_and_independent_of_the_batch() -> Result<()> {
        let cases = [
            (GgmlDType::Q8_0, 1, 32),
            (GgmlDType::Q8_0, 16, 64),
            (GgmlDType::Q8_0, 33, 96),
            (GgmlDType::Q8_0, 385, 2048),
            (GgmlDType::Q4K, 1, 256),
            (GgmlDType::Q4K, 250, 1280),
        ];
        for (block_type, rows, columns) in cases {
            let values = random_tensor(&[rows, columns], 6);
            let x = random_tensor(&[70, columns], 7);
            let (dense, packed) = quantised(&values, block_type)?;
            let want = dense.linear(&x, None)?;
            let all = packed.linear(&x, None)?;
            let error = ((&all - &want)?.sqr()?.mean_all()? / want.sqr()?.mean_all()?)?;
            let error = error.to_scalar::<f32>()?.sqrt();
            assert!(error > 1e-4 && error < 8e-3, "{block_type:?} {rows}x{columns}: {error}");
            let indices = [rows as u32 - 1, 0];
            let (selected, expected) =
                (packed.select_rows(&indices)?, dense.select_rows(&indices)?);
            assert_eq!(selected.to_vec2::<f32>()?, expected.to_vec2::<f32>()?);
            let all = all.to_vec2::<f32>()?;
            for n in [1, 2, 3, 4, 5, 6, 7, 8, 13, 32] {
                let some = packed.linear(&x.narrow(0, 70 - n, n)?, None)?.to_vec2::<f32>()?;
                assert!(some == all[70 - n..], "{n} rows of {rows}x{columns} differ");
            }
        }
        Ok(())
    }

    /// A damaged model gives NaN, which the engine reports, and not a verdict.
    #[test]
    fn byte_products_of_values_that_are_not_finite_are_nan() -> Result<()> {
        let values = random_tensor(&[20, 64], 8);
        let (_, packed) = quantised(&values, GgmlDType::Q8_0)?;
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = vec![1f32; 64];
            x[40] = value;
            let y = packed.linear(&Tensor::from_vec(x, (1, 64), &Device::Cpu)?, None)?;
            assert!(y.flatten_all()?.to_vec1::<f32>()?.iter().all(|y| y.is_nan()));
        }
        let tiny = Tensor::full(1e-38f32, (1, 64), &Device::Cpu)?;
        let y = packed.linear(&tiny, None)?.flatten_all()?.to_vec1::<f32>()?;
        assert!(y.iter().all(|y| y.abs() < 1e-30));
        Ok(())
    }
}
