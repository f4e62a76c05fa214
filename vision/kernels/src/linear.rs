//! A linear layer whose result for a row does not depend on the other rows of the batch.

use candle::{Result, Tensor};

use crate::matmul::matmul_transposed;

/// Largest result, in values, for which the matrix kernel (`gemm` 0.19, `gemm_basic_generic`) may change the
/// order of addition.
///
/// The kernel adds in the order of the inner dimension whatever the number of rows, except for a single row, for
/// results of at most 256 values, and for inner dimensions above 512, which it splits depending on the number of
/// rows. A verdict would then depend on its batch. So [`batch_invariant`] pads a small batch with zero rows and
/// splits a long inner dimension itself.
const SMALL: usize = 256;
/// Longest inner dimension that the kernel never splits.
const BLOCK: usize = 512;

/// `x · weightᵀ + bias`. Differentiable; without a gradient, a row's result does not depend on the other rows.
///
/// # Shapes
/// `x` (n, `c_in`), `weight` (`c_out`, `c_in`), `bias` (`c_out`) → (n, `c_out`).
pub fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let y = if x.device().is_cpu() && !(x.track_op() || weight.track_op()) {
        batch_invariant(x, &weight.t()?)?
    } else {
        matmul_transposed(x, weight)?
    };
    match bias {
        Some(bias) => y.broadcast_add(bias),
        None => Ok(y),
    }
}

/// `x · weight` with the same order of addition for any number of rows.
fn batch_invariant(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (n, c) = x.dims2()?;
    let min_rows = (SMALL / weight.dim(1)?.max(1) + 1).max(2);
    let x = if n < min_rows {
        x.pad_with_zeros(0, 0, min_rows - n)?
    } else {
        x.clone()
    };
    let block = |start: usize| {
        let len = BLOCK.min(c - start);
        // A weight in bf16 or f16 is converted block by block.
        let weight = weight.narrow(0, start, len)?.to_dtype(x.dtype())?;
        x.narrow(1, start, len)?.matmul(&weight)
    };
    let mut sum = block(0)?;
    for start in (BLOCK..c).step_by(BLOCK) {
        sum = (sum + block(start)?)?;
    }
    if n < min_rows {
        sum.narrow(0, 0, n)?.contiguous()
    } else {
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle::Device;

    /// Verdicts are independent of the batch because of this property. Tested for shapes of small and large models.
    #[test]
    fn results_are_bit_identical_for_any_batch_size() -> Result<()> {
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
