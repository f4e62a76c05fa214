//! `x Wᵀ`, computed so that a row's result does not depend on the rows beside it.

use acem3_vision::ops::product;
use candle::{Result, Tensor};

/// Largest product that the matrix kernel (`gemm` 0.19, `gemm_basic_generic`) may add up in a way of
/// its own, and longest inner dimension that it never cuts.
///
/// The kernel adds up in the order of the inner dimension, whatever the number of rows, except for
/// a single row, for products of at most 256 values, and for inner dimensions beyond 512, which it
/// cuts by the number of rows. A verdict would then depend on the batch it was judged in; so few
/// rows are given company, and a long inner dimension is cut here.
const SMALL: usize = 256;
const BLOCK: usize = 512;

/// The product of each row with the transposed weight, plus a bias.
///
/// # Shapes
/// `x`: `(n, c_in)`, `weight`: `(c_out, c_in)`, `bias`: `(c_out)`, result: `(n, c_out)`.
pub fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let y = if x.device().is_cpu() && !(x.track_op() || weight.track_op()) {
        steady(x, &weight.t()?)?
    } else {
        product(x, weight)?
    };
    match bias {
        Some(bias) => y.broadcast_add(bias),
        None => Ok(y),
    }
}

/// `x · weight` with one order of addition for any number of rows.
fn steady(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (n, c) = x.dims2()?;
    let fewest = (SMALL / weight.dim(1)?.max(1) + 1).max(2);
    let x = if n < fewest {
        x.pad_with_zeros(0, 0, fewest - n)?
    } else {
        x.clone()
    };
    let block = |start: usize| {
        let len = BLOCK.min(c - start);
        // A weight kept in bf16 or f16 is widened block by block.
        let weight = weight.narrow(0, start, len)?.to_dtype(x.dtype())?;
        x.narrow(1, start, len)?.matmul(&weight)
    };
    let mut sum = block(0)?;
    for start in (BLOCK..c).step_by(BLOCK) {
        sum = (sum + block(start)?)?;
    }
    if n < fewest {
        sum.narrow(0, 0, n)?.contiguous()
    } else {
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle::Device;

    /// The property that verdicts do not depend on their batch rests on, for shapes of small and
    /// large models.
    #[test]
    fn a_row_alone_equals_the_same_row_in_company_to_the_bit() -> Result<()> {
        for (c_in, c_out) in [
            (192, 512),
            (512, 192),
            (192, 4096),
            (192, 96),
            (4096, 96),
            (5632, 64),
        ] {
            let x = Tensor::randn(0f32, 1.0, (131, c_in), &Device::Cpu)?;
            let w = Tensor::randn(0f32, 1.0, (c_out, c_in), &Device::Cpu)?;
            let all = linear(&x, &w, None)?.to_vec2::<f32>()?;
            for n in [1, 2, 3, 5, 7, 8, 16, 17, 31, 48, 64, 100] {
                let some = linear(&x.narrow(0, 131 - n, n)?, &w, None)?.to_vec2::<f32>()?;
                assert!(
                    some == all[131 - n..],
                    "{n} rows of {c_in} to {c_out} differ"
                );
            }
        }
        Ok(())
    }
}
