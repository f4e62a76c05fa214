//! Products of inputs rounded to bf16 with weights in bf16, in the order of the matrix instructions
//! AMX.
//!
//! The order of addition is that of `TDPBF16PS` (Intel's Software Developer's Manual, volume 2): one
//! instruction multiplies 16 pairs of values. It adds the products of the first values of the pairs
//! in one chain of fused operations, those of the second values in another, adds both sums, and adds
//! the result to the output. Here the pairs of a row are the neighbours at columns `2t + 8m` and
//! `2t + 8m + 1` for `m` from 0 to 15: four instructions `t` for 128 columns. Other processors compute
//! eight chains in a vector register ([`crate::row_product`]). So all processors give equal results.
//!
//! AMX treats numbers below 2⁻¹²⁶ as zero. They do not occur: inputs below 2⁻⁴⁰ count as zero
//! ([`round_input`]) and weights below 2⁻⁷² are zero ([`flush_tiny_weights`]), so all products are
//! multiples of 2⁻¹²⁶, and so are all sums.

mod rounding;
#[cfg(target_arch = "x86_64")]
mod self_test;
#[cfg(target_arch = "x86_64")]
mod tile;
#[cfg(target_arch = "x86_64")]
mod tile_input;
#[cfg(target_arch = "x86_64")]
mod tile_task;
#[cfg(target_arch = "x86_64")]
mod tile_unit;
#[cfg(target_arch = "x86_64")]
mod tile_weights;
#[cfg(target_arch = "x86_64")]
mod transpose;

use candle::{Result, Tensor};
#[cfg(target_arch = "x86_64")]
use half::slice::HalfFloatSliceExt as _;

pub use self::rounding::flush_tiny_weights;
use self::rounding::round_input;
#[cfg(target_arch = "x86_64")]
use self::{tile_task::Weight, tile_unit::TileUnit};
use crate::elements::with_f32_slice;
use crate::linear::matmul_batch_invariant;
use crate::row_product::{WeightOrder, multiply_by_rows};

/// From this number of input rows on, a product uses the tile unit. Fewer are multiplied as fast as
/// their weights are read.
#[cfg(target_arch = "x86_64")]
const MIN_TILE_INPUTS: usize = 5;

/// Computes `x · weightᵀ` with inputs rounded to bf16 and a weight in bf16, on the CPU.
///
/// # Shapes
/// `x` (n, `c_in`), `weight` (`c_out`, `c_in`) → (n, `c_out`).
pub(crate) fn multiply_rounded(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let shape = (x.dims2()?, weight.dims2()?);
    let ((n, c_in), (c_out, columns)) = shape;
    if c_in != columns {
        candle::bail!("product of {n} rows of {c_in} values with {c_out} rows of {columns} values");
    }
    #[cfg(target_arch = "x86_64")]
    if n >= MIN_TILE_INPUTS
        && columns > 0
        && let Some(unit) = find_unit()
    {
        return multiply_with(unit, x, weight);
    }
    let rounded = with_f32_slice(x, |x| x.iter().map(|x| widen(round_input(*x))).collect())?;
    let x = Tensor::from_vec::<_, f32>(rounded, (n, c_in), x.device())?;
    match multiply_by_rows(&x, weight, WeightOrder::Tiles)? {
        Some(y) => Ok(y),
        None => matmul_batch_invariant(&x, &weight.t()?),
    }
}

/// Returns the value of bits in bf16.
fn widen(bits: u16) -> f32 {
    half::bf16::from_bits(bits).to_f32()
}

/// Returns true if products of inputs rounded to bf16 use the matrix unit of this processor. It has
/// passed a test of equality with the vector instructions. Results do not depend on it.
pub fn has_tile_unit() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        find_unit().is_some()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Returns the tile unit of this processor if its results equal those of the vector instructions in a
/// test at the first use.
#[cfg(target_arch = "x86_64")]
fn find_unit() -> Option<TileUnit> {
    static FOUND: std::sync::OnceLock<Option<TileUnit>> = std::sync::OnceLock::new();
    *FOUND.get_or_init(|| TileUnit::find().filter(|unit| self_test::is_equal(*unit)))
}

#[cfg(target_arch = "x86_64")]
fn multiply_with(unit: TileUnit, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (rows, columns) = weight.dims2()?;
    let n = x.dim(0)?;
    let (storage, layout) = weight.storage_and_layout();
    let (candle::Storage::Cpu(storage), Some((start, end))) =
        (&*storage, layout.contiguous_offsets())
    else {
        candle::bail!("the weight is not contiguous on the CPU");
    };
    let values = storage.as_slice::<half::bf16>()?[start..end].reinterpret_cast();
    let weight = Weight { values, rows, columns };
    let product = with_f32_slice(x, |x| unit.product(x, n, weight))?;
    Tensor::from_vec(product, (n, rows), x.device())
}

#[cfg(test)]
mod tests {
    use candle::{DType, Device};

    use super::*;
    use crate::Matrix;

    /// The definition: eight chains of fused operations, then the sums of neighbours, of pairs and of
    /// halves.
    fn dot_product(x: &[f32], weights: &[f32]) -> f32 {
        let mut product = 0.;
        for (x, weights) in x.chunks(1024).zip(weights.chunks(1024)) {
            let mut pairs = [0f32; 4];
            for (x, weights) in x.chunks(128).zip(weights.chunks(128)) {
                let mut sums = [0f32; 8];
                for (i, (x, weight)) in x.iter().zip(weights).enumerate() {
                    sums[i % 8] = x.mul_add(*weight, sums[i % 8]);
                }
                for (pair, sums) in pairs.iter_mut().zip(sums.as_chunks::<2>().0) {
                    *pair += sums[0] + sums[1];
                }
            }
            product += (pairs[0] + pairs[1]) + (pairs[2] + pairs[3]);
        }
        product
    }

    #[test]
    fn products_equal_their_definition_for_any_number_of_inputs() -> Result<()> {
        for (rows, columns) in [(1, 1), (33, 7), (16, 128), (50, 192), (40, 1029), (35, 2100)] {
            let weight = Tensor::randn(0f32, 1.0, (rows, columns), &Device::Cpu)?;
            let weight = weight.to_dtype(DType::BF16)?;
            let x = Tensor::randn(0f32, 1.0, (71, columns), &Device::Cpu)?;
            let values = weight.to_dtype(DType::F32)?.to_vec2::<f32>()?;
            let rounded = x.to_dtype(DType::BF16)?.to_dtype(DType::F32)?.to_vec2::<f32>()?;
            let matrix = Matrix::Rounded(weight);
            for n in [1, 2, 4, 5, 8, 16, 17, 32, 33, 71] {
                let got = matrix.linear(&x.narrow(0, 71 - n, n)?, None)?.to_vec2::<f32>()?;
                for (x, got) in rounded[71 - n..].iter().zip(got) {
                    let want = values.iter().map(|weights| dot_product(x, weights));
                    assert!(want.eq(got), "{n} inputs, {rows}x{columns}");
                }
            }
        }
        Ok(())
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "a skipped test says why")]
    #[cfg(target_arch = "x86_64")]
    fn tile_unit_passes_the_test_of_equality() {
        match TileUnit::find() {
            Some(unit) => assert!(self_test::is_equal(unit)),
            None => println!("skipped: this processor has no AMX"),
        }
    }

    #[test]
    fn inputs_that_are_not_finite_give_nan() -> Result<()> {
        let weight = Tensor::ones((20, 64), DType::BF16, &Device::Cpu)?;
        for n in [1, 40] {
            let mut x = vec![1f32; n * 64];
            x[40] = f32::NAN;
            let x = Tensor::from_vec(x, (n, 64), &Device::Cpu)?;
            let y = Matrix::Rounded(weight.clone()).linear(&x, None)?.to_vec2::<f32>()?;
            assert!(y[0].iter().all(|value| value.is_nan()));
            assert!(y[1..].iter().flatten().all(|value| value.to_bits() == 64f32.to_bits()));
        }
        Ok(())
    }
}
