//! A linear layer whose result for a row does not depend on the other rows of the batch.

use candle::{Result, Tensor};

use crate::elements::MAX_UNSPLIT_LENGTH;
use crate::matmul::matmul_transposed;
use crate::row_product::{WeightOrder, multiply_by_rows};

/// Largest product, in values, for which the matrix kernel may change the order of addition.
///
/// The kernel (`gemm` 0.19, `gemm_basic_generic`) adds in the order of the inner dimension for any
/// number of rows, with three exceptions: a single row, a product of at most 256 values, and an
/// inner dimension above 512, which it splits depending on the number of rows. A verdict would then
/// depend on its batch. So [`matmul_batch_invariant`] pads small batches with zero rows and splits
/// long inner dimensions itself. Processors without the kernel of [`crate::row_product`] use it.
const MAX_REORDERED_VALUES: usize = 256;

/// Computes `x · weightᵀ + bias`. Differentiable.
///
/// On the CPU, if no gradient is tracked, the result of a row does not depend on the other rows.
///
/// # Shapes
/// `x` (n, `c_in`), `weight` (`c_out`, `c_in`), `bias` (`c_out`) → (n, `c_out`).
pub fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let y = if x.device().is_cpu() && !(x.track_op() || weight.track_op()) {
        match multiply_by_rows(x, weight, WeightOrder::Dense)? {
            Some(y) => y,
            None => matmul_batch_invariant(x, &weight.t()?)?,
        }
    } else {
        matmul_transposed(x, weight)?
    };
    match bias {
        Some(bias) => y.broadcast_add(&bias.to_dtype(y.dtype())?),
        None => Ok(y),
    }
}

/// Computes `x · weight` with the same order of addition for any number of rows.
pub(crate) fn matmul_batch_invariant(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (n, c) = x.dims2()?;
    let min_rows = (MAX_REORDERED_VALUES / weight.dim(1)?.max(1) + 1).max(2);
    let x = if n < min_rows { x.pad_with_zeros(0, 0, min_rows - n)? } else { x.clone() };
    let multiply_block = |start: usize| {
        let len = MAX_UNSPLIT_LENGTH.min(c - start);
        // A weight in bf16 or f16 is converted block by block.
        let weight = weight.narrow(0, start, len)?.to_dtype(x.dtype())?;
        x.narrow(1, start, len)?.matmul(&weight)
    };
    let mut sum = multiply_block(0)?;
    for start in (MAX_UNSPLIT_LENGTH..c).step_by(MAX_UNSPLIT_LENGTH) {
        sum = (sum + multiply_block(start)?)?;
    }
    if n < min_rows { sum.narrow(0, 0, n)?.contiguous() } else { Ok(sum) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::random_tensor;
    use candle::DType;

    /// Processors without the kernel use the general one.
    #[test]
    fn both_kernels_agree() -> Result<()> {
        for (c_in, c_out) in [(1, 2), (7, 3), (64, 16), (192, 96), (509, 33), (1100, 250), (9, 1)] {
            let x = random_tensor(&[70, c_in], 1);
            let w = random_tensor(&[c_out, c_in], 2);
            for dtype in [DType::F32, DType::BF16, DType::F16] {
                let w = w.to_dtype(dtype)?;
                for n in [1, 2, 3, 4, 5, 7, 33, 70] {
                    let x = x.narrow(0, 70 - n, n)?;
                    let Some(got) = multiply_by_rows(&x, &w, WeightOrder::Dense)? else {
                        return Ok(());
                    };
                    let want = matmul_batch_invariant(&x, &w.t()?)?;
                    let error = (got - want)?.abs()?.max_all()?.to_scalar::<f32>()?;
                    let limit = 1e-6 * (c_in as f32).max(4.);
                    assert!(error < limit, "{n} rows of {c_in} to {c_out} in {dtype:?}: {error}");
                }
            }
        }
        Ok(())
    }

    /// Because of this property, a verdict does not depend on its batch. The shapes are those of
    /// small and large models.
    #[test]
    fn results_are_bit_identical_for_any_batch_size() -> Result<()> {
        for (c_in, c_out) in
            [(192, 512), (512, 192), (192, 4096), (192, 96), (4096, 96), (5632, 64)]
        {
            let x = random_tensor(&[131, c_in], 3);
            let w = random_tensor(&[c_out, c_in], 4);
            let all = linear(&x, &w, None)?.to_vec2::<f32>()?;
            for n in [1, 2, 3, 5, 7, 8, 16, 17, 31, 48, 64, 100] {
                let some = linear(&x.narrow(0, 131 - n, n)?, &w, None)?.to_vec2::<f32>()?;
                assert!(some == all[131 - n..], "{n} rows of {c_in} to {c_out} differ");
            }
        }
        Ok(())
    }
}
