//! The activations of a vision transformer's MLP.

use candle::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::exp::sigmoid;
use super::{FLAT_BLOCK, floats, fused};
use crate::config::HiddenAct;

/// `√(2/π)` and the cubic term of the tanh form of GELU.
const ROOT: f32 = 0.797_884_6;
const CUBIC: f32 = 0.044_715;

/// Applies an activation to every element, differentiable.
///
/// # Shapes
/// any → the same.
pub fn activate(x: &Tensor, act: HiddenAct) -> Result<Tensor> {
    let Some(gate) = Gate::of(act).filter(|_| fused(x)) else {
        return composed(x, act);
    };
    x.contiguous()?.apply_op1(gate)
}

fn composed(x: &Tensor, act: HiddenAct) -> Result<Tensor> {
    match act {
        HiddenAct::QuickGelu => x * candle_nn::ops::sigmoid(&(x * 1.702)?)?,
        HiddenAct::Gelu => x.gelu_erf(),
        HiddenAct::GeluPytorchTanh => x.gelu(),
    }
}

/// The activations of the form `x · σ(u(x))`. The tanh form of GELU is one, as `(1 + tanh v) / 2 = σ(2v)`.
#[derive(Clone, Copy)]
enum Gate {
    Quick,
    Tanh,
}

impl Gate {
    fn of(act: HiddenAct) -> Option<Self> {
        match act {
            HiddenAct::QuickGelu => Some(Self::Quick),
            HiddenAct::GeluPytorchTanh => Some(Self::Tanh),
            HiddenAct::Gelu => None,
        }
    }

    /// Fills `y` from `x`; one loop for each form, so that each vectorises.
    fn values(self, y: &mut [f32], x: &[f32]) {
        let pairs = y.iter_mut().zip(x);
        match self {
            Self::Quick => pairs.for_each(|(y, x)| *y = x * sigmoid(quick(*x).0)),
            Self::Tanh => pairs.for_each(|(y, x)| *y = x * sigmoid(tanh(*x).0)),
        }
    }

    /// Fills `out` with `g · (σ + x u′ σ (1 − σ))`.
    fn gradients(self, out: &mut [f32], x: &[f32], g: &[f32]) {
        let slope = |x: f32, (u, slope): (f32, f32)| {
            let gate = sigmoid(u);
            gate * (1. + x * slope * (1. - gate))
        };
        let all = out.iter_mut().zip(x).zip(g);
        match self {
            Self::Quick => all.for_each(|((out, x), g)| *out = g * slope(*x, quick(*x))),
            Self::Tanh => all.for_each(|((out, x), g)| *out = g * slope(*x, tanh(*x))),
        }
    }
}

/// `u` of the quick form, and its derivative.
#[inline]
fn quick(x: f32) -> (f32, f32) {
    (1.702 * x, 1.702)
}

/// `u` of the tanh form, and its derivative.
#[inline]
fn tanh(x: f32) -> (f32, f32) {
    let square = CUBIC * x * x;
    (
        2. * ROOT * x * (1. + square),
        2. * ROOT * (1. + 3. * square),
    )
}

impl CustomOp1 for Gate {
    fn name(&self) -> &'static str {
        "activation"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = floats(storage, layout)?;
        let mut y = vec![0f32; x.len()];
        y.par_chunks_mut(FLAT_BLOCK)
            .zip(x.par_chunks(FLAT_BLOCK))
            .for_each(|(y, x)| self.values(y, x));
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some(x.apply_op2_no_bwd(
            &grad.contiguous()?,
            &GateGradient(*self),
        )?))
    }
}

/// From `x` and the gradient of the result, that of `x`.
struct GateGradient(Gate);

impl CustomOp2 for GateGradient {
    fn name(&self) -> &'static str {
        "activation-gradient"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        g: &CpuStorage,
        g_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (x, g) = (floats(x, x_layout)?, floats(g, g_layout)?);
        let mut out = vec![0f32; x.len()];
        let blocks = x.par_chunks(FLAT_BLOCK).zip(g.par_chunks(FLAT_BLOCK));
        out.par_chunks_mut(FLAT_BLOCK)
            .zip(blocks)
            .for_each(|(out, (x, g))| self.0.gradients(out, x, g));
        Ok((CpuStorage::F32(out), x_layout.shape().clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{distance, numbers, same};
    use super::*;

    #[test]
    fn equals_the_composed_form() {
        let x = numbers(&[5, 7000], 1);
        let act = HiddenAct::QuickGelu;
        same(
            std::slice::from_ref(&x),
            || activate(&x, act),
            || composed(&x, act),
        );
    }

    #[test]
    fn tanh_form_equals_its_definition() {
        // candle's own gradient of this one has constants of six digits only.
        let x = numbers(&[5, 7], 1);
        let definition = || {
            let inner = (x.as_tensor() + (x.powf(3.)? * f64::from(CUBIC))?)?;
            let tanh = (inner * f64::from(ROOT))?.tanh()?;
            (x.as_tensor() * 0.5)? * (tanh + 1.)?
        };
        let act = HiddenAct::GeluPytorchTanh;
        same(std::slice::from_ref(&x), || activate(&x, act), definition);
        let (ours, candle) = (activate(&x, act).unwrap(), composed(&x, act).unwrap());
        assert!(distance(&ours, &candle) < 1e-6);
    }

    #[test]
    fn every_activation_passes_a_gradient() {
        for act in [
            HiddenAct::QuickGelu,
            HiddenAct::Gelu,
            HiddenAct::GeluPytorchTanh,
        ] {
            let x = numbers(&[9], 3);
            let grads = activate(&x, act)
                .unwrap()
                .sum_all()
                .unwrap()
                .backward()
                .unwrap();
            let large = grads.get(&x).unwrap().abs().unwrap().max(0).unwrap();
            assert!(large.to_scalar::<f32>().unwrap() > 0.1, "{act:?}");
        }
    }
}
