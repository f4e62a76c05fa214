//! Softmax over the last dimension.

use candle::{CpuStorage, CustomOp1, CustomOp2, D, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::exp::exp;
use super::{BLOCK, floats, fused, sum_by};

/// Softmax over the last dimension, differentiable.
///
/// # Shapes
/// any (…, n) → the same.
pub fn softmax(x: &Tensor) -> Result<Tensor> {
    if fused(x) {
        x.contiguous()?.apply_op1(Softmax)
    } else {
        composed(x)
    }
}

fn composed(x: &Tensor) -> Result<Tensor> {
    // The shift by the largest element cancels, so that no gradient has to go through it.
    let exp = x
        .broadcast_sub(&x.max_keepdim(D::Minus1)?.detach())?
        .exp()?;
    exp.broadcast_div(&exp.sum_keepdim(D::Minus1)?)
}

struct Softmax;

impl CustomOp1 for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = floats(storage, layout)?;
        let n = last(layout);
        let mut y = vec![0f32; x.len()];
        y.par_chunks_mut(BLOCK * n)
            .zip(x.par_chunks(BLOCK * n))
            .for_each(|(y, x)| {
                for (y, x) in y.chunks_mut(n).zip(x.chunks(n)) {
                    let max = x
                        .iter()
                        .fold(f32::NEG_INFINITY, |max, x| if *x > max { *x } else { max });
                    for (y, x) in y.iter_mut().zip(x) {
                        *y = exp(x - max);
                    }
                    let scale = 1. / sum_by(y, y, |y, _| y);
                    for y in y {
                        *y *= scale;
                    }
                }
            });
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    fn bwd(&self, _: &Tensor, y: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some(
            y.apply_op2_no_bwd(&grad.contiguous()?, &SoftmaxGradient)?,
        ))
    }
}

/// From the softmax `y` and the gradient `g` of it: `y · (g − Σ g y)`.
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
        let (y, g) = (floats(y, y_layout)?, floats(g, g_layout)?);
        let n = last(y_layout);
        let mut out = vec![0f32; y.len()];
        let blocks = y.par_chunks(BLOCK * n).zip(g.par_chunks(BLOCK * n));
        out.par_chunks_mut(BLOCK * n)
            .zip(blocks)
            .for_each(|(out, (y, g))| {
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

/// The length of a row; at least 1, for rows are cut by it.
fn last(layout: &Layout) -> usize {
    layout.dims().last().map_or(1, |n| (*n).max(1))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{numbers, same};
    use super::*;

    #[test]
    fn equals_the_composed_form() {
        for shape in [vec![1, 1], vec![3, 2, 65], vec![70, 13], vec![2, 3, 5, 8]] {
            let x = numbers(&shape, 1);
            same(std::slice::from_ref(&x), || softmax(&x), || composed(&x));
        }
        let x = numbers(&[4, 6, 5], 2);
        let turned = || x.transpose(1, 2);
        same(
            std::slice::from_ref(&x),
            || softmax(&turned()?),
            || composed(&turned()?),
        );
    }

    #[test]
    fn masked_positions_are_zero_and_large_scores_stay_finite() {
        let x = Tensor::new(&[[1e4f32, f32::NEG_INFINITY, 1e4]], &candle::Device::Cpu).unwrap();
        assert_eq!(
            softmax(&x).unwrap().to_vec2::<f32>().unwrap(),
            [[0.5, 0., 0.5]]
        );
    }
}
