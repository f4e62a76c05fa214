//! Rotary position embedding, the half-rotation form of Llama
//! (`apply_rotary_pos_emb` in transformers' `modeling_llama.py`).

use std::sync::Arc;

use acem3_kernels::{as_f32_slice, with_gradient};
use candle::{CpuStorage, CustomOp1, DType, Device, Layout, Result, Shape, Tensor, bail};

/// The cosine and sine of every place up to a context length.
#[derive(Clone, Debug)]
pub struct Rotary {
    cos: Arc<[f32]>,
    sin: Arc<[f32]>,
    half: usize,
    context: usize,
}

impl Rotary {
    /// Tables for heads of size `d` and `context` places, with base `theta`.
    pub fn new(d: usize, context: usize, theta: f64) -> Self {
        Self::stretched(d, context, theta, |_, period| period)
    }

    /// Tables whose pairs turn as slowly as `stretch` makes of their place in the head and their
    /// period (places per radian).
    pub fn stretched(
        d: usize,
        context: usize,
        theta: f64,
        stretch: impl Fn(usize, f64) -> f64,
    ) -> Self {
        let half = d / 2;
        let period = |pair: usize| stretch(pair, theta.powf(2.0 * pair as f64 / d as f64));
        let periods: Vec<f64> = (0..half).map(period).collect();
        let angle = |i: usize| {
            let (place, pair) = (i / half.max(1), i % half.max(1));
            (place as f64) / periods.get(pair).copied().unwrap_or(1.0)
        };
        let cos = (0..context * half).map(|i| angle(i).cos() as f32).collect();
        let sin = (0..context * half).map(|i| angle(i).sin() as f32).collect();
        Self {
            cos,
            sin,
            half,
            context,
        }
    }

    fn tables(&self, positions: &[u32], device: &Device) -> Result<(Tensor, Tensor)> {
        let pick = |table: &[f32]| {
            let rows = positions.iter().flat_map(|p| {
                let start = *p as usize * self.half;
                table[start..start + self.half].iter().copied()
            });
            Tensor::from_vec(
                rows.collect::<Vec<_>>(),
                (positions.len(), 1, self.half),
                device,
            )
        };
        Ok((pick(&self.cos)?, pick(&self.sin)?))
    }
}

/// Rotates each head of each token by its position.
///
/// # Shapes
/// `x`: `(n, h, d)` with one position for each of the `n` tokens; the result has the same shape.
pub fn rope(x: &Tensor, positions: &Arc<[u32]>, rotary: &Rotary) -> Result<Tensor> {
    let (n, _, d) = x.dims3()?;
    if positions.len() != n || d != rotary.half * 2 {
        bail!(
            "{} positions and head size {d} do not fit {:?}",
            positions.len(),
            x.shape()
        );
    }
    if let Some(far) = positions.iter().find(|p| **p as usize >= rotary.context) {
        bail!(
            "position {far} is beyond the model's context of {}",
            rotary.context
        );
    }
    if x.device().is_cpu() && x.dtype() == DType::F32 {
        let op = Rope {
            positions: positions.clone(),
            rotary: rotary.clone(),
            backwards: false,
        };
        return x.contiguous()?.apply_op1(op);
    }
    composed(x, positions, rotary)
}

fn composed(x: &Tensor, positions: &[u32], rotary: &Rotary) -> Result<Tensor> {
    let (cos, sin) = rotary.tables(positions, x.device())?;
    let half = rotary.half;
    let turned = move |x: &Tensor, sin: &Tensor| {
        let (first, second) = (x.narrow(2, 0, half)?, x.narrow(2, half, half)?);
        let left = (first.broadcast_mul(&cos)? - second.broadcast_mul(sin)?)?;
        let right = (second.broadcast_mul(&cos)? + first.broadcast_mul(sin)?)?;
        Tensor::cat(&[left, right], 2)
    };
    let y = turned(&x.detach(), &sin)?;
    // A rotation's gradient is the rotation back.
    with_gradient(x, &y, move |_, _, upstream| turned(upstream, &sin.neg()?))
}

struct Rope {
    positions: Arc<[u32]>,
    rotary: Rotary,
    backwards: bool,
}

impl CustomOp1 for Rope {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = as_f32_slice(storage, layout, self.name())?;
        let (_, h, d) = layout.shape().dims3()?;
        let half = self.rotary.half;
        let sign = if self.backwards { -1.0 } else { 1.0 };
        let mut out = vec![0.0f32; x.len()];
        let rows = x.chunks_exact(h * d).zip(out.chunks_exact_mut(h * d));
        for (position, (x, out)) in self.positions.iter().zip(rows) {
            let start = *position as usize * half;
            let cos = &self.rotary.cos[start..start + half];
            let sin = &self.rotary.sin[start..start + half];
            for (x, out) in x.chunks_exact(d).zip(out.chunks_exact_mut(d)) {
                let (first, second) = x.split_at(half);
                let (left, right) = out.split_at_mut(half);
                for i in 0..half {
                    let turn = sin[i] * sign;
                    left[i] = first[i] * cos[i] - second[i] * turn;
                    right[i] = second[i] * cos[i] + first[i] * turn;
                }
            }
        }
        Ok((CpuStorage::F32(out), layout.shape().clone()))
    }

    fn bwd(&self, _x: &Tensor, _res: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let op = Self {
            positions: self.positions.clone(),
            rotary: self.rotary.clone(),
            backwards: !self.backwards,
        };
        Ok(Some(grad.contiguous()?.apply_op1_no_bwd(&op)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acem3_kernels::to_f32_vec;
    use candle::Var;

    #[test]
    fn equals_the_composed_form_forwards_and_backwards() -> Result<()> {
        let rotary = Rotary::new(6, 16, 10_000.0);
        let x = Var::randn(0f32, 1.0, (4, 2, 6), &Device::Cpu)?;
        let upstream = Tensor::randn(0f32, 1.0, (4, 2, 6), &Device::Cpu)?;
        let positions: Arc<[u32]> = vec![0, 3, 15, 7].into();
        let (a, b) = (
            rope(&x, &positions, &rotary)?,
            composed(&x, &positions, &rotary)?,
        );
        let grads = [&a, &b].map(|y| (y * &upstream)?.sum_all()?.backward());
        let [ga, gb] = grads;
        let (ga, gb) = (ga?, gb?);
        let (Some(ga), Some(gb)) = (ga.get(&x), gb.get(&x)) else {
            panic!("no gradient")
        };
        for (a, b) in [(&a, &b), (ga, gb)] {
            let worst = to_f32_vec(&(a - b)?.abs()?)?
                .into_iter()
                .fold(0.0, f32::max);
            assert!(worst < 1e-5, "difference {worst}");
        }
        Ok(())
    }

    #[test]
    fn a_place_beyond_the_context_is_an_error() -> Result<()> {
        let x = Tensor::zeros((1, 1, 4), DType::F32, &Device::Cpu)?;
        assert!(rope(&x, &vec![8].into(), &Rotary::new(4, 8, 10_000.0)).is_err());
        Ok(())
    }
}
