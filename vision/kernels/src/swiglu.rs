//! SwiGLU, the activation of Llama's feed-forward block: `silu(gate) * up`.

use candle::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::custom_gradient::with_gradients;
use crate::elements::{FLAT_BLOCK, as_f32_slice, is_cpu_f32, with_f32_slice};
use crate::exp::sigmoid;
use crate::gpu::layers;

/// Computes `gate * sigmoid(gate) * up`, elementwise.
///
/// # Shapes
/// `gate`, `up` and the result have equal shapes.
pub fn swiglu(gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    if is_cpu_f32(gate) {
        return gate.contiguous()?.apply_op2(&up.contiguous()?, SwiGlu);
    }
    match layers::swiglu(gate, up)? {
        Some(y) => Ok(y),
        None => composed(gate, up),
    }
}

/// Computes [`swiglu`] from candle's operations.
fn composed(gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    let y = (gate.detach().silu()? * up.detach())?;
    with_gradients(gate, up, &y, |gate, up, upstream| {
        let sigmoid = candle_nn::ops::sigmoid(gate)?;
        let silu = (gate * &sigmoid)?;
        // Derivative of silu(g) with s = sigmoid(g): s + g · s · (1 − s).
        let slope = (&sigmoid + (&silu - (&silu * &sigmoid)?)?)?;
        let (dgate, dup) = ((upstream * up)? * slope, upstream * silu);
        Ok([Some(dgate?), Some(dup?)])
    })
}

/// Fused [`swiglu`] on the CPU.
struct SwiGlu;

impl CustomOp2 for SwiGlu {
    fn name(&self) -> &'static str {
        "swiglu"
    }

    fn cpu_fwd(
        &self,
        gate: &CpuStorage,
        gate_layout: &Layout,
        up: &CpuStorage,
        up_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let gate = as_f32_slice(gate, gate_layout, self.name())?;
        let up = as_f32_slice(up, up_layout, self.name())?;
        if gate.len() != up.len() {
            bail!("gate {:?} and up {:?} differ", gate_layout.shape(), up_layout.shape());
        }
        let mut out = vec![0.0; gate.len()];
        out.par_chunks_mut(FLAT_BLOCK)
            .zip(gate.par_chunks(FLAT_BLOCK).zip(up.par_chunks(FLAT_BLOCK)))
            .for_each(|(out, (gate, up))| Arch::new().dispatch(GateBlock { gate, up, out }));
        Ok((CpuStorage::F32(out), gate_layout.shape().clone()))
    }

    fn bwd(
        &self,
        gate: &Tensor,
        up: &Tensor,
        _res: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (mut dgate, mut dup) = (vec![0.0; gate.elem_count()], vec![0.0; up.elem_count()]);
        with_f32_slice(gate, |gate| {
            with_f32_slice(up, |up| {
                with_f32_slice(grad, |grad| {
                    let (dgate, dup) = (&mut dgate, &mut dup);
                    Arch::new().dispatch(GateGradients { gate, up, grad, dgate, dup });
                })
            })
        })???;
        let dgate = Tensor::from_vec(dgate, gate.shape(), gate.device())?;
        Ok((Some(dgate), Some(Tensor::from_vec(dup, up.shape(), up.device())?)))
    }
}

/// A few elements, with the vector instructions of the processor.
struct GateBlock<'a> {
    gate: &'a [f32],
    up: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for GateBlock<'_> {
    type Output = ();

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for every function with vector instructions")]
    fn with_simd<S: Simd>(self, _: S) {
        for ((out, gate), up) in self.out.iter_mut().zip(self.gate).zip(self.up) {
            *out = gate * sigmoid(*gate) * up;
        }
    }
}

/// Elements with their gradients, with the vector instructions of the processor.
struct GateGradients<'a> {
    gate: &'a [f32],
    up: &'a [f32],
    grad: &'a [f32],
    dgate: &'a mut [f32],
    dup: &'a mut [f32],
}

impl WithSimd for GateGradients<'_> {
    type Output = ();

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for every function with vector instructions")]
    fn with_simd<S: Simd>(self, _: S) {
        let inputs = self.gate.iter().zip(self.up).zip(self.grad);
        for ((dgate, dup), ((g, u), grad)) in self.dgate.iter_mut().zip(self.dup).zip(inputs) {
            let s = sigmoid(*g);
            *dup = grad * g * s;
            *dgate = grad * u * s * (1.0 + g * (1.0 - s));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elements::to_f32_vec;
    use crate::tests::random_var;

    #[test]
    fn fused_values_and_gradients_match_composed() -> Result<()> {
        let (gate, up) = (random_var(&[5, 7], 1), random_var(&[5, 7], 2));
        let fused = swiglu(&gate, &up)?;
        let max_abs = |t: Tensor| {
            Ok::<_, candle::Error>(to_f32_vec(&t.abs()?)?.into_iter().fold(0.0, f32::max))
        };
        let by_autodiff = (gate.silu()? * up.as_tensor())?;
        for other in [composed(&gate, &up)?, by_autodiff] {
            assert!(max_abs((&fused - &other)?)? < 1e-6);
            let (a, b) = (fused.sqr()?.sum_all()?.backward()?, other.sqr()?.sum_all()?.backward()?);
            for var in [&gate, &up] {
                let (Some(a), Some(b)) = (a.get(var), b.get(var)) else { panic!("no gradient") };
                assert!(max_abs((a - b)?)? < 1e-5);
            }
        }
        Ok(())
    }
}
