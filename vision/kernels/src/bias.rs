//! Addition of a bias to every row.

use candle::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use crate::elements::{ROW_BLOCK, as_f32_slice, is_cpu_f32};
use crate::gpu::layers;
use crate::reduce::{accumulate, sum_blocks};

/// Adds `bias` to every row of `x`. Differentiable in both.
///
/// # Shapes
/// `x` (…, n), `bias` (n) → (…, n).
pub fn add_bias(x: &Tensor, bias: &Tensor) -> Result<Tensor> {
    if is_cpu_f32(x) {
        return x.contiguous()?.apply_op2(&bias.contiguous()?, AddBias);
    }
    match layers::add_bias(x, bias)? {
        Some(y) => Ok(y),
        None => add_bias_composed(x, bias),
    }
}

fn add_bias_composed(x: &Tensor, bias: &Tensor) -> Result<Tensor> {
    x.broadcast_add(bias)
}

struct AddBias;

impl CustomOp2 for AddBias {
    fn name(&self) -> &'static str {
        "add-bias"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let x = as_f32_slice(x, x_layout, self.name())?;
        let bias = as_f32_slice(bias, bias_layout, self.name())?;
        let n = bias.len();
        if n == 0 || bias_layout.dims().len() != 1 || x_layout.dims().last() != Some(&n) {
            bail!(
                "add-bias: `x` is {:?} and `bias` is {:?}, expected rows of the length of `bias`",
                x_layout.dims(),
                bias_layout.dims()
            );
        }
        let mut y = vec![0f32; x.len()];
        y.par_chunks_mut(ROW_BLOCK * n).zip(x.par_chunks(ROW_BLOCK * n)).for_each(|(y, x)| {
            for (y, x) in y.chunks_mut(n).zip(x.chunks(n)) {
                for ((y, x), bias) in y.iter_mut().zip(x).zip(bias) {
                    *y = x + bias;
                }
            }
        });
        Ok((CpuStorage::F32(y), x_layout.shape().clone()))
    }

    fn bwd(
        &self,
        _: &Tensor,
        _: &Tensor,
        _: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let bias_grad = grad.contiguous()?.apply_op1_no_bwd(&SumRows)?;
        Ok((Some(grad.clone()), Some(bias_grad)))
    }
}

/// Sums all rows: (…, n) → (n).
struct SumRows;

impl CustomOp1 for SumRows {
    fn name(&self) -> &'static str {
        "sum-rows"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = as_f32_slice(storage, layout, self.name())?;
        let n = layout.dims().last().map_or(1, |n| (*n).max(1));
        let block_sums: Vec<Vec<f32>> = x
            .par_chunks(ROW_BLOCK * n)
            .map(|x| {
                let mut sum = vec![0f32; n];
                x.chunks(n).for_each(|row| accumulate(&mut sum, row));
                sum
            })
            .collect();
        Ok((CpuStorage::F32(sum_blocks(&block_sums, n)), Shape::from(n)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{assert_equivalent, random_var};

    #[test]
    fn fused_and_composed_addition_agree() {
        for shape in [vec![1, 3], vec![2, 70, 5], vec![130, 8]] {
            let bias = random_var(&shape[shape.len() - 1..], 1);
            let x = random_var(&shape, 2);
            assert_equivalent(
                &[x.clone(), bias.clone()],
                || add_bias(&x, &bias),
                || add_bias_composed(&x, &bias),
            );
        }
    }

    #[test]
    fn bias_of_wrong_length_is_an_error() {
        let error = add_bias(&random_var(&[2, 3], 1), &random_var(&[2], 2)).unwrap_err();
        assert!(error.to_string().contains("`x` is [2, 3] and `bias` is [2]"), "{error}");
    }
}
