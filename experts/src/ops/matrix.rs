//! A weight matrix as it is kept: in single precision, or in the blocks of its file.

use std::borrow::Cow;

use candle::quantized::{GgmlDType, QStorage, QTensor};
use candle::{DType, Device, Result, Tensor, bail};
use candle_nn::VarBuilder;
use rayon::prelude::*;

use super::linear;

/// Values that are unpacked at once: 1 MB of them, which a core's cache holds.
const PORTION: usize = 1 << 18;

/// A matrix of `(c_out, c_in)`.
#[derive(Clone, Debug)]
pub enum Matrix {
    /// Numbers.
    Dense(Tensor),
    /// Rows of blocks that share a scale, as bytes `(c_out, bytes of a row)`. They are unpacked a
    /// few rows at a time whenever they are multiplied, and then are what a dense matrix of the same
    /// values is: results are equal to the bit, and memory stays as small as the file.
    Blocks {
        /// The rows.
        bytes: Tensor,
        /// The type of the blocks.
        blocks: GgmlDType,
        /// Values of a row (`c_in`).
        columns: usize,
    },
}

/// The types of blocks, with the ending by which a builder offers a matrix of them.
pub const BLOCKS: [(GgmlDType, &str); 10] = [
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
    /// The matrix of a name, or the bytes of the name with an ending of [`BLOCKS`].
    pub fn load(vb: &VarBuilder, (rows, columns): (usize, usize), name: &str) -> Result<Self> {
        for (blocks, ending) in BLOCKS {
            let packed = format!("{name}.{ending}");
            if vb.contains_tensor(&packed) {
                if columns % blocks.block_size() != 0 {
                    bail!("`{name}`: rows of {columns} values are not whole blocks of {ending}");
                }
                let row = columns / blocks.block_size() * blocks.type_size();
                let bytes = vb.get((rows, row), &packed)?;
                return Ok(Self::Blocks {
                    bytes,
                    blocks,
                    columns,
                });
            }
        }
        vb.get((rows, columns), name).map(Self::Dense)
    }

    /// The product of each row of `x` with the transposed matrix, plus a bias.
    ///
    /// # Shapes
    /// `x`: `(n, c_in)`, `bias`: `(c_out)`, result: `(n, c_out)`.
    pub fn linear(&self, x: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        let (bytes, blocks, columns) = match self {
            Self::Dense(weight) => return linear(x, weight, bias),
            Self::Blocks {
                bytes,
                blocks,
                columns,
            } => (bytes, *blocks, *columns),
        };
        let rows = bytes.dim(0)?;
        let portion = (PORTION / columns.max(1)).max(1);
        let products = (0..rows)
            .step_by(portion)
            .map(|start| {
                let some = bytes.narrow(0, start, portion.min(rows - start))?;
                linear(x, &unpacked(&some, blocks, columns)?, None)
            })
            .collect::<Result<Vec<_>>>()?;
        let y = Tensor::cat(&products, 1)?;
        match bias {
            Some(bias) => y.broadcast_add(bias),
            None => Ok(y),
        }
    }

    /// Some of its rows.
    ///
    /// # Shapes
    /// `n` places to `(n, c_in)`.
    pub fn rows(&self, places: &[u32]) -> Result<Tensor> {
        match self {
            Self::Dense(weight) => {
                let places = Tensor::new(places, weight.device())?;
                if weight.track_op() {
                    // Widened first, so that gradients of a row that is taken often are added up in f32.
                    return weight.to_dtype(DType::F32)?.index_select(&places, 0);
                }
                weight.index_select(&places, 0)?.to_dtype(DType::F32)
            }
            Self::Blocks {
                bytes,
                blocks,
                columns,
            } => {
                let places = Tensor::new(places, bytes.device())?;
                unpacked(&bytes.index_select(&places, 0)?, *blocks, *columns)
            }
        }
    }
}

/// The values of rows of blocks, in f32 on the CPU.
///
/// # Shapes
/// `(n, bytes of a row)` to `(n, columns)`.
pub fn unpacked(bytes: &Tensor, blocks: GgmlDType, columns: usize) -> Result<Tensor> {
    let rows = bytes.dim(0)?;
    let bytes = bytes.to_dtype(DType::U8)?.flatten_all()?.to_vec1::<u8>()?;
    let row = bytes.len() / rows.max(1);
    let each = rows.div_ceil(rayon::current_num_threads().max(1)).max(1);
    let parts: Vec<Tensor> = bytes
        .par_chunks((row * each).max(1))
        .map(|part| {
            let n = part.len() / row.max(1);
            // Its own copy, which begins where numbers may begin.
            let storage = QStorage::from_data(Cow::Owned(part.to_vec()), &Device::Cpu, blocks)?;
            QTensor::new(storage, (n, columns))?.dequantize(&Device::Cpu)
        })
        .collect::<Result<_>>()?;
    Tensor::cat(&parts, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The property that lets memory stay small without moving a verdict.
    #[test]
    fn packed_and_unpacked_give_equal_products_to_the_bit() -> Result<()> {
        let (rows, columns) = (700, 1024);
        let values = Tensor::randn(0f32, 1.0, (rows, columns), &Device::Cpu)?;
        let x = Tensor::randn(0f32, 1.0, (37, columns), &Device::Cpu)?;
        let bias = Tensor::randn(0f32, 1.0, rows, &Device::Cpu)?;
        for blocks in [
            GgmlDType::Q8_0,
            GgmlDType::Q4K,
            GgmlDType::Q5K,
            GgmlDType::Q6K,
        ] {
            let packed = QTensor::quantize(&values, blocks)?;
            let dense = Matrix::Dense(packed.dequantize(&Device::Cpu)?);
            let bytes = packed.data()?.into_owned();
            let row = bytes.len() / rows;
            let bytes = Tensor::from_vec(bytes, (rows, row), &Device::Cpu)?;
            let packed = Matrix::Blocks {
                bytes,
                blocks,
                columns,
            };
            for n in [1, 2, 5, 37] {
                let some = x.narrow(0, 37 - n, n)?;
                let want = dense.linear(&some, Some(&bias))?.to_vec2::<f32>()?;
                let got = packed.linear(&some, Some(&bias))?.to_vec2::<f32>()?;
                assert!(got == want, "{n} rows of {blocks:?} differ");
            }
            let places = [699, 3, 3, 0];
            let (want, got) = (dense.rows(&places)?, packed.rows(&places)?);
            assert_eq!(got.to_vec2::<f32>()?, want.to_vec2::<f32>()?);
        }
        Ok(())
    }
}
