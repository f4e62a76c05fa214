//! SwiGLU, the activation of Llama's feed-forward block: `silu(gate) * up`.

use acem3_kernels::{as_f32_slice, to_f32_vec, with_gradients};
use candle::{CpuStorage, CustomOp2, DType, Layout, Result, Shape, Tensor, bail};

/// Computes `gate * sigmoid(gate) * up`, elementwise.
///
/// # Shapes
/// `gate`, `up` and the result have equal shapes.
pub fn swiglu(gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    if gate.device().is_cpu() && gate.dtype() == DType::F32 {
        return gate.contiguous()?.apply_op2(&up.contiguous()?, SwiGlu);
    }
    composed(gate, up)
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

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

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
        let out = gate.iter().zip(up).map(|(g, u)| g * sigmoid(*g) * u).collect();
        Ok((CpuStorage::F32(out), gate_layout.shape().clone()))
    }

    fn bwd(
        &self,
        gate: &Tensor,
        up: &Tensor,
        _res: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (gates, ups, grads) = (to_f32_vec(gate)?, to_f32_vec(up)?, to_f32_vec(grad)?);
        let mut dgate = Vec::with_capacity(gates.len());
        let mut dup = Vec::with_capacity(gates.len());
        for ((g, u), upstream) in gates.iter().zip(&ups).zip(&grads) {
            let s = sigmoid(*g);
            dup.push(upstream * g * s);
            dgate.push(upstream * u * s * (1.0 + g * (1.0 - s)));
        }
        let dgate = Tensor::from_vec(dgate, gate.shape(), gate.device())?;
        Ok((Some(dgate), Some(Tensor::from_vec(dup, up.shape(), up.device())?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle::{Device, Var};

    #[test]
    fn fused_values_and_gradients_match_composed() -> Result<()> {
        let gate = Var::randn(0f32, 2.0, (5, 7), &Device::Cpu)?;
        let up = Var::randn(0f32, 1.0, (5, 7), &Device::Cpu)?;
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
