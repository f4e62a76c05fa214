//! Activations of transformer MLPs.

#![expect(
    clippy::inline_always,
    reason = "the loops need to be part of the function that enables vector instructions"
)]

use candle::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::elements::{FLAT_BLOCK, as_f32_slice, is_cpu_f32};
use crate::exp::{exp, sigmoid};

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

/// `√(1/2)`, as in `Φ(x) = (1 + erf(x √(1/2))) / 2`.
const SQRT_HALF: f32 = std::f32::consts::FRAC_1_SQRT_2;
/// `1 / √(2π)`: the density of the standard normal distribution at 0.
const NORMAL_PEAK: f32 = 0.398_942_3;
/// `p` in formula 7.1.26 of Abramowitz and Stegun for the error function.
const ERF_SCALE: f32 = 0.327_591_1;
/// `a₁` to `a₅` in the same formula, the coefficients of the powers of `t`.
const ERF_POWERS: [f32; 5] = [0.254_829_6, -0.284_496_74, 1.421_413_7, -1.453_152, 1.061_405_4];

/// Applies an activation to every element. Differentiable.
///
/// # Shapes
/// Any; the result has the same shape.
pub fn activate(x: &Tensor, activation: Activation) -> Result<Tensor> {
    if is_cpu_f32(x) {
        x.contiguous()?.apply_op1(GatedActivation(activation))
    } else {
        activate_composed(x, activation)
    }
}

fn activate_composed(x: &Tensor, activation: Activation) -> Result<Tensor> {
    match activation {
        Activation::QuickGelu => x * candle_nn::ops::sigmoid(&(x * 1.702)?)?,
        Activation::Gelu => x.gelu_erf(),
        Activation::GeluPytorchTanh => x.gelu(),
    }
}

/// An activation as the product `x · g(x)` of its input and a gate. The tanh approximation of GELU has
/// the gate `σ(2v)`, because `(1 + tanh v) / 2 = σ(2v)`.
#[derive(Clone, Copy)]
struct GatedActivation(Activation);

/// The activations of a few elements, with the vector instructions of the processor.
struct ActivatedBlock<'a> {
    activation: Activation,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl WithSimd for ActivatedBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { activation, x, y } = self;
        // Each activation has its own loop so that it vectorises.
        match activation {
            Activation::QuickGelu => apply_gate(y, x, quick_gelu_gate),
            Activation::Gelu => apply_gate(y, x, gelu_gate),
            Activation::GeluPytorchTanh => apply_gate(y, x, tanh_gelu_gate),
        }
    }
}

/// The gradients of a few elements `x`, with the vector instructions of the processor.
struct GradientBlock<'a> {
    activation: Activation,
    x: &'a [f32],
    /// Gradients of the outputs.
    grad: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for GradientBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { activation, x, grad, out } = self;
        match activation {
            Activation::QuickGelu => apply_gate_backward(out, x, grad, quick_gelu_gate),
            Activation::Gelu => apply_gate_backward(out, x, grad, gelu_gate),
            Activation::GeluPytorchTanh => apply_gate_backward(out, x, grad, tanh_gelu_gate),
        }
    }
}

/// Writes `x · g(x)` to `y`. `gate` returns `g(x)` and its derivative.
#[inline(always)]
fn apply_gate(y: &mut [f32], x: &[f32], gate: impl Fn(f32) -> (f32, f32)) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = x * gate(*x).0;
    }
}

/// Writes `grad · (g(x) + x g′(x))` to `out`. `gate` returns `g(x)` and its derivative.
#[inline(always)]
fn apply_gate_backward(out: &mut [f32], x: &[f32], grad: &[f32], gate: impl Fn(f32) -> (f32, f32)) {
    for ((out, x), grad) in out.iter_mut().zip(x).zip(grad) {
        let (gate, derivative) = gate(*x);
        *out = grad * (gate + x * derivative);
    }
}

/// Returns `σ(1.702 x)` and its derivative.
#[inline(always)]
fn quick_gelu_gate(x: f32) -> (f32, f32) {
    let gate = sigmoid(1.702 * x);
    (gate, 1.702 * gate * (1. - gate))
}

/// Returns `Φ(x)`, the distribution function of the standard normal distribution, and its derivative,
/// the density. The absolute error of `Φ` is below 2·10⁻⁷.
#[inline(always)]
fn gelu_gate(x: f32) -> (f32, f32) {
    let bell = exp(-0.5 * x * x);
    let t = 1. / (1. + ERF_SCALE * SQRT_HALF * x.abs());
    let series = ERF_POWERS.iter().rev().fold(0., |sum, power| (sum + power) * t);
    let tail = 0.5 * series * bell;
    (if x < 0. { tail } else { 1. - tail }, NORMAL_PEAK * bell)
}

/// Returns the gate of the tanh approximation and its derivative.
#[inline(always)]
fn tanh_gelu_gate(x: f32) -> (f32, f32) {
    let square = CUBIC_COEFFICIENT * x * x;
    let gate = sigmoid(2. * SQRT_2_OVER_PI * x * (1. + square));
    (gate, 2. * SQRT_2_OVER_PI * (1. + 3. * square) * gate * (1. - gate))
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
            .for_each(|(y, x)| Arch::new().dispatch(ActivatedBlock { activation: self.0, x, y }));
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
        let activation = self.0.0;
        out.par_chunks_mut(FLAT_BLOCK).zip(blocks).for_each(|(out, (x, grad))| {
            Arch::new().dispatch(GradientBlock { activation, x, grad, out });
        });
        Ok((CpuStorage::F32(out), x_layout.shape().clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{assert_equivalent, random_var, relative_error};

    #[test]
    fn fused_and_composed_activations_agree() {
        let x = random_var(&[5, 7000], 1);
        for activation in [Activation::QuickGelu, Activation::Gelu] {
            assert_equivalent(
                std::slice::from_ref(&x),
                || activate(&x, activation),
                || activate_composed(&x, activation),
            );
        }
    }

    #[test]
    fn exact_gelu_is_accurate_in_its_range() {
        let values: Vec<f32> = (-2000..2000).map(|i| i as f32 * 0.01).collect();
        let x = Tensor::from_vec(values, 4000, &candle::Device::Cpu).unwrap();
        let definition = x.to_dtype(candle::DType::F64).unwrap().gelu_erf().unwrap();
        let ours = activate(&x, Activation::Gelu).unwrap();
        let errors = (ours.to_dtype(candle::DType::F64).unwrap() - definition).unwrap();
        for (error, x) in
            errors.to_vec1::<f64>().unwrap().into_iter().zip(x.to_vec1::<f32>().unwrap())
        {
            assert!(error.abs() <= 2e-7 * f64::from(x.abs().max(1.)), "x = {x}: error {error}");
        }
        let extreme = Tensor::new(&[f32::NAN, f32::INFINITY, -100.], &candle::Device::Cpu).unwrap();
        let extreme = activate(&extreme, Activation::Gelu).unwrap().to_vec1::<f32>().unwrap();
        assert!(extreme[0].is_nan() && extreme[1].is_infinite() && extreme[2].abs() < 1e-30);
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
