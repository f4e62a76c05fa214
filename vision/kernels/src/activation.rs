//! Activations of transformer MLPs.

use candle::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::elements::{FLAT_BLOCK, as_f32_slice, is_cpu_f32};
use crate::exp::sigmoid;

/// Activation between the two layers of an MLP. The serialised names are the values of `hidden_act`
/// in `config.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Activation {
    /// `x · σ(1.702 x)` (`OpenAI`'s CLIP).
    #[serde(rename = "quick_gelu")]
    QuickGelu,
    /// Exact GELU, with the error function (`open_clip`, `BiomedCLIP`).
    #[serde(rename = "gelu")]
    Gelu,
    /// The tanh approximation of GELU (`SigLIP`).
    #[serde(rename = "gelu_pytorch_tanh")]
    GeluPytorchTanh,
}

/// `√(2/π)` in the tanh approximation of GELU.
const SQRT_2_OVER_PI: f32 = 0.797_884_6;
/// Coefficient of `x³` in the tanh approximation of GELU.
const CUBIC_COEFFICIENT: f32 = 0.044_715;

/// Applies an activation to every element. Differentiable.
///
/// # Shapes
/// Any; the result has the same shape.
pub fn activate(x: &Tensor, activation: Activation) -> Result<Tensor> {
    let Some(gate) = GatedActivation::from_activation(activation).filter(|_| is_cpu_f32(x)) else {
        return activate_composed(x, activation);
    };
    x.contiguous()?.apply_op1(gate)
}

fn activate_composed(x: &Tensor, activation: Activation) -> Result<Tensor> {
    match activation {
        Activation::QuickGelu => x * candle_nn::ops::sigmoid(&(x * 1.702)?)?,
        Activation::Gelu => x.gelu_erf(),
        Activation::GeluPytorchTanh => x.gelu(),
    }
}

/// An activation of the form `x · σ(u(x))`. The tanh approximation of GELU has this form because
/// `(1 + tanh v) / 2 = σ(2v)`.
#[derive(Clone, Copy)]
enum GatedActivation {
    QuickGelu,
    TanhGelu,
}

impl GatedActivation {
    fn from_activation(activation: Activation) -> Option<Self> {
        match activation {
            Activation::QuickGelu => Some(Self::QuickGelu),
            Activation::GeluPytorchTanh => Some(Self::TanhGelu),
            Activation::Gelu => None,
        }
    }

    /// Writes the activations of `x` to `y`. Each variant has its own loop so that it vectorises.
    fn apply(self, y: &mut [f32], x: &[f32]) {
        let pairs = y.iter_mut().zip(x);
        match self {
            Self::QuickGelu => pairs.for_each(|(y, x)| *y = x * sigmoid(quick_gelu_gate(*x).0)),
            Self::TanhGelu => pairs.for_each(|(y, x)| *y = x * sigmoid(tanh_gelu_gate(*x).0)),
        }
    }

    /// Writes `g · (σ + x u′ σ (1 − σ))` to `out`.
    fn apply_backward(self, out: &mut [f32], x: &[f32], g: &[f32]) {
        let derivative = |x: f32, (u, u_derivative): (f32, f32)| {
            let gate = sigmoid(u);
            gate * (1. + x * u_derivative * (1. - gate))
        };
        let elements = out.iter_mut().zip(x).zip(g);
        match self {
            Self::QuickGelu => {
                elements.for_each(|((out, x), g)| *out = g * derivative(*x, quick_gelu_gate(*x)));
            }
            Self::TanhGelu => {
                elements.for_each(|((out, x), g)| *out = g * derivative(*x, tanh_gelu_gate(*x)));
            }
        }
    }
}

/// Returns `u(x)` of the quick GELU and its derivative.
#[inline]
fn quick_gelu_gate(x: f32) -> (f32, f32) {
    (1.702 * x, 1.702)
}

/// Returns `u(x)` of the tanh approximation and its derivative.
#[inline]
fn tanh_gelu_gate(x: f32) -> (f32, f32) {
    let square = CUBIC_COEFFICIENT * x * x;
    (2. * SQRT_2_OVER_PI * x * (1. + square), 2. * SQRT_2_OVER_PI * (1. + 3. * square))
}

impl CustomOp1 for GatedActivation {
    fn name(&self) -> &'static str {
        "activation"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = as_f32_slice(storage, layout, self.name())?;
        let mut y = vec![0f32; x.len()];
        y.par_chunks_mut(FLAT_BLOCK)
            .zip(x.par_chunks(FLAT_BLOCK))
            .for_each(|(y, x)| self.apply(y, x));
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some(x.apply_op2_no_bwd(&grad.contiguous()?, &GatedActivationBackward(*self))?))
    }
}

/// Computes the gradient of `x` from `x` and the gradient of the result.
struct GatedActivationBackward(GatedActivation);

impl CustomOp2 for GatedActivationBackward {
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
        let x = as_f32_slice(x, x_layout, self.name())?;
        let g = as_f32_slice(g, g_layout, self.name())?;
        let mut out = vec![0f32; x.len()];
        let blocks = x.par_chunks(FLAT_BLOCK).zip(g.par_chunks(FLAT_BLOCK));
        out.par_chunks_mut(FLAT_BLOCK)
            .zip(blocks)
            .for_each(|(out, (x, g))| self.0.apply_backward(out, x, g));
        Ok((CpuStorage::F32(out), x_layout.shape().clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{assert_equivalent, random_var, relative_error};

    #[test]
    fn fused_and_composed_quick_gelu_agree() {
        let x = random_var(&[5, 7000], 1);
        let activation = Activation::QuickGelu;
        assert_equivalent(
            std::slice::from_ref(&x),
            || activate(&x, activation),
            || activate_composed(&x, activation),
        );
    }

    #[test]
    fn tanh_gelu_matches_its_definition() {
        // candle's gradient is no reference, because its constants have only six digits.
        let x = random_var(&[5, 7], 1);
        let definition = || {
            let inner = (x.as_tensor() + (x.powf(3.)? * f64::from(CUBIC_COEFFICIENT))?)?;
            let tanh = (inner * f64::from(SQRT_2_OVER_PI))?.tanh()?;
            (x.as_tensor() * 0.5)? * (tanh + 1.)?
        };
        let activation = Activation::GeluPytorchTanh;
        assert_equivalent(std::slice::from_ref(&x), || activate(&x, activation), definition);
        let (ours, candle) =
            (activate(&x, activation).unwrap(), activate_composed(&x, activation).unwrap());
        assert!(relative_error(&ours, &candle) < 1e-6);
    }

    #[test]
    fn every_activation_is_differentiable() {
        for activation in [Activation::QuickGelu, Activation::Gelu, Activation::GeluPytorchTanh] {
            let x = random_var(&[9], 3);
            let grads = activate(&x, activation).unwrap().sum_all().unwrap().backward().unwrap();
            let large = grads.get(&x).unwrap().abs().unwrap().max(0).unwrap();
            assert!(large.to_scalar::<f32>().unwrap() > 0.1, "{activation:?}");
        }
    }
}
