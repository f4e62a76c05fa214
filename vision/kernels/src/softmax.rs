//! Softmax over the last dimension.

use candle::{CpuStorage, CustomOp1, CustomOp2, D, Layout, Result, Shape, Tensor};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::elements::{ROW_BLOCK, as_f32_slice, is_cpu_f32};
use crate::exp::exp;
use crate::reduce::sum_by;

/// Computes the softmax over the last dimension. Differentiable.
///
/// # Shapes
/// (…, n) → (…, n).
pub fn softmax(x: &Tensor) -> Result<Tensor> {
    if x.device().is_cuda() && !x.track_op() {
        // candle's kernel has no backward pass.
        return candle_nn::ops::softmax_last_dim(&x.contiguous()?);
    }
    if is_cpu_f32(x) { x.contiguous()?.apply_op1(Softmax) } else { softmax_composed(x) }
}

/// Replaces the scores of a row by the softmax of `scale` times the scores. Scores of −∞ become 0.
pub fn softmax_row(row: &mut [f32], scale: f32) {
    Arch::new().dispatch(SoftmaxRow { row, scale });
}

/// A row, with the vector instructions of the processor.
struct SoftmaxRow<'a> {
    row: &'a mut [f32],
    scale: f32,
}

impl WithSimd for SoftmaxRow<'_> {
    type Output = ();

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for every function with vector instructions")]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { row, scale } = self;
        let mut max = [f32::NEG_INFINITY; 8];
        let (groups, rest) = row.as_chunks::<8>();
        for group in groups {
            for (max, x) in max.iter_mut().zip(group) {
                // A comparison, unlike `f32::max`, is one instruction.
                *max = if *x > *max { *x } else { *max };
            }
        }
        let max = max.iter().chain(rest).fold(f32::NEG_INFINITY, |max, x| max.max(*x));
        for x in row.iter_mut() {
            *x = exp((*x - max) * scale);
        }
        let factor = 1. / sum_by(row, row, |x, _| x);
        for x in row {
            *x *= factor;
        }
    }
}

fn softmax_composed(x: &Tensor) -> Result<Tensor> {
    // The maximum cancels out of the result, so no gradient needs to flow through it.
    let exp = x.broadcast_sub(&x.max_keepdim(D::Minus1)?.detach())?.exp()?;
    exp.broadcast_div(&exp.sum_keepdim(D::Minus1)?)
}

struct Softmax;

impl CustomOp1 for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = as_f32_slice(storage, layout, self.name())?;
        let n = row_length(layout);
        let mut y = vec![0f32; x.len()];
        y.par_chunks_mut(ROW_BLOCK * n).zip(x.par_chunks(ROW_BLOCK * n)).for_each(|(y, x)| {
            y.copy_from_slice(x);
            for row in y.chunks_mut(n) {
                softmax_row(row, 1.);
            }
        });
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    fn bwd(&self, _: &Tensor, y: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some(y.apply_op2_no_bwd(&grad.contiguous()?, &SoftmaxGradient)?))
    }
}

/// Computes the gradient of the input, `y · (g − Σ g y)`, from the softmax `y` and its gradient
/// `g`.
struct SoftmaxGradient;

impl CustomOp2 for SoftmaxGradient {
    fn name(&self) -> &'static str {
        "softmax-gradient"
    }

    fn cpu_fwd(
        &self,
        y: &CpuStorage,
        y_layout: &Layout,
        g: &CpuStorage,
        g_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let y = as_f32_slice(y, y_layout, self.name())?;
        let g = as_f32_slice(g, g_layout, self.name())?;
        let n = row_length(y_layout);
        let mut out = vec![0f32; y.len()];
        let blocks = y.par_chunks(ROW_BLOCK * n).zip(g.par_chunks(ROW_BLOCK * n));
        out.par_chunks_mut(ROW_BLOCK * n).zip(blocks).for_each(|(out, (y, g))| {
            for ((out, y), g) in out.chunks_mut(n).zip(y.chunks(n)).zip(g.chunks(n)) {
                let dot = sum_by(y, g, |y, g| y * g);
                for ((out, y), g) in out.iter_mut().zip(y).zip(g) {
                    *out = y * (g - dot);
                }
            }
        });
        Ok((CpuStorage::F32(out), y_layout.shape().clone()))
    }
}

/// Returns the length of a row, at least 1 because it is used as a chunk size.
fn row_length(layout: &Layout) -> usize {
    layout.dims().last().map_or(1, |n| (*n).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{assert_equivalent, random_var};

    #[test]
    fn fused_and_composed_softmax_agree() {
        for shape in [vec![1, 1], vec![3, 2, 65], vec![70, 13], vec![2, 3, 5, 8]] {
            let x = random_var(&shape, 1);
            assert_equivalent(std::slice::from_ref(&x), || softmax(&x), || softmax_composed(&x));
        }
        let x = random_var(&[4, 6, 5], 2);
        let transposed = || x.transpose(1, 2);
        assert_equivalent(
            std::slice::from_ref(&x),
            || softmax(&transposed()?),
            || softmax_composed(&transposed()?),
        );
    }

    #[test]
    fn masked_positions_are_zero_and_large_scores_stay_finite() {
        let x = Tensor::new(&[[1e4f32, f32::NEG_INFINITY, 1e4]], &candle::Device::Cpu).unwrap();
        assert_eq!(softmax(&x).unwrap().to_vec2::<f32>().unwrap(), [[0.5, 0., 0.5]]);
    }
}
