//! Products of inputs rounded to bf16 with weights in bf16, in the order of the matrix instructions
//! AMX.
//!
//! The order of addition is that of `TDPBF16PS` (Intel's Software Developer's Manual, volume 2): for
//! each output, one instruction multiplies 16 pairs of values. It adds the products of the first values
//! of the pairs in one chain of fused operations, those of the second values in another, adds both sums,
//! and adds the result to the output. Here the pairs of a row are the neighbours at columns `2t + 8m` and
//! `2t + 8m + 1` for `m` from 0 to 15: four instructions `t` for 128 columns.
//!
//! Processors with `AVX512_BF16` compute eight chains for two weight rows in a vector register, and two
//! operations of each with one instruction ([`pair_unit`]). Products with one row, and other processors,
//! compute eight chains in a vector register ([`crate::row_product`]) or in portable code. So all
//! processors give equal results, except for the bits of results that are not a number.
//!
//! AMX and `AVX512_BF16` treat magnitudes below 2⁻¹²⁶ as zero. They do not occur: inputs below 2⁻⁴⁰ count
//! as zero ([`rounding`]) and so do weights below 2⁻⁷² ([`RoundedWeight`]). Both have eight significant
//! bits, so all products are multiples of 2⁻¹²⁶, and so are all sums. Products are exact in f32. Columns
//! beyond the last one are zeros, which change no sum: a chain begins with +0 and never becomes −0.

#[cfg(target_arch = "x86_64")]
mod bf16_rows;
#[cfg(target_arch = "x86_64")]
mod bf16_unit;
#[cfg(target_arch = "x86_64")]
mod pair_unit;
mod portable;
mod rounded_weight;
mod rounding;
#[cfg(target_arch = "x86_64")]
mod self_test;
#[cfg(target_arch = "x86_64")]
mod tile_input;
#[cfg(target_arch = "x86_64")]
mod tile_task;
#[cfg(target_arch = "x86_64")]
mod tile_unit;
#[cfg(target_arch = "x86_64")]
mod tile_weights;
#[cfg(target_arch = "x86_64")]
mod tile_words;
#[cfg(target_arch = "x86_64")]
mod transpose;

use candle::{DType, Result, Tensor, bail};
use rayon::prelude::*;

pub use self::rounded_weight::RoundedWeight;
use self::rounding::{round_input, widen};
#[cfg(target_arch = "x86_64")]
use self::{bf16_rows::Bf16Rows, bf16_unit::Bf16Unit};
use crate::elements::{FLAT_BLOCK, with_f32_slice};
use crate::row_product::{WeightOrder, multiply_by_rows};

/// Computes `x · weightᵀ` with inputs rounded to bf16, on the CPU. Without a gradient.
///
/// # Shapes
/// `x` (n, `c_in`), `weight` (`c_out`, `c_in`) → (n, `c_out`).
pub(crate) fn multiply_rounded(x: &Tensor, weight: &RoundedWeight) -> Result<Tensor> {
    let ((n, c_in), (rows, columns)) = (x.dims2()?, weight.values().dims2()?);
    if c_in != columns || x.track_op() {
        bail!("product of {n} rounded rows of {c_in} values with {rows} rows of {columns} values");
    }
    #[cfg(target_arch = "x86_64")]
    if columns > 0
        && let Some(unit) = Bf16Unit::select(n)
    {
        let product = with_f32_slice(x, |x| {
            weight.with_bits(|values| unit.product(x, n, Bf16Rows { values, rows, columns }))
        })??;
        return Tensor::from_vec(product, (n, rows), x.device());
    }
    let mut rounded = vec![0f32; n * columns];
    with_f32_slice(x, |x| {
        let blocks = rounded.par_chunks_mut(FLAT_BLOCK).zip(x.par_chunks(FLAT_BLOCK));
        blocks.for_each(|(rounded, x)| {
            rounded.iter_mut().zip(x).for_each(|(rounded, x)| *rounded = widen(round_input(*x)));
        });
    })?;
    let x = Tensor::from_vec(rounded, (n, columns), x.device())?;
    if let Some(product) = multiply_by_rows(&x, weight.values(), WeightOrder::Tiles)? {
        return Ok(product);
    }
    let weights = weight.values().to_dtype(DType::F32)?;
    let product = with_f32_slice(&x, |x| {
        with_f32_slice(&weights, |weights| portable::multiply(x, weights, [n, rows, columns]))
    })??;
    Tensor::from_vec(product, (n, rows), x.device())
}

/// Returns the name of this processor's instructions for products of inputs rounded to bf16: AMX or
/// `AVX512_BF16`. They have passed a test of equality with portable code. Results do not depend on them.
pub fn bf16_instructions() -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        Bf16Unit::largest().map(Bf16Unit::name)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        None
    }
}

#[cfg(test)]
mod tests {
    use candle::Device;

    use super::*;
    use crate::Matrix;
    use crate::tests::random_tensor;

    fn random_weight(rows: usize, columns: usize) -> Result<RoundedWeight> {
        let values = random_tensor(&[rows, columns], 1);
        RoundedWeight::new(&values.to_dtype(DType::BF16)?)
    }

    /// AMX reads the weights twice for more than 128 inputs.
    #[test]
    fn products_equal_those_of_portable_code_for_any_number_of_inputs() -> Result<()> {
        let shapes = [(1, 1), (33, 7), (16, 128), (50, 192), (250, 192), (40, 1029), (35, 2100)];
        for (rows, columns) in shapes {
            let weight = random_weight(rows, columns)?;
            let x = random_tensor(&[200, columns], 2);
            let rounded = x.to_dtype(DType::BF16)?.to_dtype(DType::F32)?;
            let rounded = rounded.flatten_all()?.to_vec1::<f32>()?;
            let wide = weight.values().to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
            let want = portable::multiply(&rounded, &wide, [200, rows, columns]);
            let matrix = Matrix::Rounded(weight);
            for n in [1, 2, 4, 5, 8, 16, 17, 32, 33, 71, 129, 200] {
                let got = matrix.linear(&x.narrow(0, 200 - n, n)?, None)?;
                let got = got.flatten_all()?.to_vec1::<f32>()?;
                assert!(got == want[(200 - n) * rows..], "{n} inputs, {rows}x{columns}");
            }
        }
        Ok(())
    }

    #[test]
    fn parts_of_a_matrix_give_parts_of_products() -> Result<()> {
        let matrix = Matrix::Rounded(random_weight(96, 64)?);
        for n in [1, 40] {
            let x = random_tensor(&[n, 64], 3);
            let want = matrix.linear(&x, None)?.narrow(1, 32, 50)?.to_vec2::<f32>()?;
            assert_eq!(matrix.narrow(32, 50)?.linear(&x, None)?.to_vec2::<f32>()?, want);
        }
        Ok(())
    }

    #[test]
    fn inputs_that_are_not_finite_give_nan() -> Result<()> {
        let weight = RoundedWeight::new(&Tensor::ones((20, 64), DType::BF16, &Device::Cpu)?)?;
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

    #[test]
    fn inputs_with_a_gradient_are_an_error() -> Result<()> {
        let x = candle::Var::ones((3, 8), DType::F32, &Device::Cpu)?;
        assert!(multiply_rounded(&x, &random_weight(4, 8)?).is_err());
        Ok(())
    }
}
