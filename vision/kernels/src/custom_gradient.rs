//! Operations with a custom gradient, on any device.
//!
//! candle's composed operations store every intermediate value, and also compute the gradients of
//! constants such as frozen weights and masks. Here the caller computes the result without a graph,
//! and the backward pass calls a closure that computes the gradient from the inputs.

use std::sync::{Mutex, PoisonError};

use candle::backend::BackendStorage as _;
use candle::{
    CpuStorage, CudaStorage, CustomOp1, CustomOp2, Layout, MetalStorage, Result, Shape, Storage,
    Tensor, bail,
};

/// Adds `y`, computed from `x` outside the graph, to the graph. `gradient` computes the gradient of
/// `x` from `x`, `y` and the gradient of `y`.
///
/// # Shapes
/// The result has the shape of `y`; `gradient` returns the shape of `x`.
pub fn with_gradient<G>(x: &Tensor, y: &Tensor, gradient: G) -> Result<Tensor>
where
    G: Fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor> + Send + Sync + 'static,
{
    if x.track_op() { x.apply_op1(CustomGradient::new(y, gradient)?) } else { Ok(y.detach()) }
}

/// Adds `y`, computed from `a` and `b` outside the graph, to the graph. `gradient` computes the
/// gradients of `a` and `b` from `a`, `b` and the gradient of `y`. It may return `None` for an
/// input that tracks no gradient.
///
/// # Shapes
/// The result has the shape of `y`; `gradient` returns the shapes of `a` and `b`.
pub fn with_gradients<G>(a: &Tensor, b: &Tensor, y: &Tensor, gradient: G) -> Result<Tensor>
where
    G: Fn(&Tensor, &Tensor, &Tensor) -> Result<[Option<Tensor>; 2]> + Send + Sync + 'static,
{
    if a.track_op() || b.track_op() {
        a.apply_op2(b, CustomGradient::new(y, gradient)?)
    } else {
        Ok(y.detach())
    }
}

/// An operation whose result is computed before the graph contains it.
struct CustomGradient<G> {
    /// The result until the forward pass moves it into the graph, so that it is stored only once.
    result: Mutex<Option<Tensor>>,
    gradient: G,
}

impl<G> CustomGradient<G> {
    fn new(y: &Tensor, gradient: G) -> Result<Self> {
        let mut y = y.detach().contiguous()?;
        if y.layout().start_offset() != 0 {
            y = y.force_contiguous()?;
        }
        Ok(Self { result: Mutex::new(Some(y)), gradient })
    }

    fn take_result(&self) -> Result<Tensor> {
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        match result.take() {
            Some(y) => Ok(y),
            None => bail!("{NAME}: the forward pass ran twice"),
        }
    }

    fn take_cpu(&self) -> Result<(CpuStorage, Shape)> {
        let y = self.take_result()?;
        let (storage, layout) = y.storage_and_layout();
        match &*storage {
            Storage::Cpu(y) => Ok((y.try_clone(layout)?, layout.shape().clone())),
            _ => bail!("{NAME}: result and input are on different devices"),
        }
    }

    fn take_cuda(&self) -> Result<(CudaStorage, Shape)> {
        let y = self.take_result()?;
        let (storage, layout) = y.storage_and_layout();
        match &*storage {
            Storage::Cuda(y) => Ok((y.try_clone(layout)?, layout.shape().clone())),
            _ => bail!("{NAME}: result and input are on different devices"),
        }
    }

    fn take_metal(&self) -> Result<(MetalStorage, Shape)> {
        let y = self.take_result()?;
        let (storage, layout) = y.storage_and_layout();
        match &*storage {
            Storage::Metal(y) => Ok((y.try_clone(layout)?, layout.shape().clone())),
            _ => bail!("{NAME}: result and input are on different devices"),
        }
    }
}

const NAME: &str = "custom-gradient";

impl<G> CustomOp1 for CustomGradient<G>
where
    G: Fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>,
{
    fn name(&self) -> &'static str {
        NAME
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        self.take_cpu()
    }

    fn cuda_fwd(&self, _: &CudaStorage, _: &Layout) -> Result<(CudaStorage, Shape)> {
        self.take_cuda()
    }

    fn metal_fwd(&self, _: &MetalStorage, _: &Layout) -> Result<(MetalStorage, Shape)> {
        self.take_metal()
    }

    fn bwd(&self, x: &Tensor, y: &Tensor, upstream: &Tensor) -> Result<Option<Tensor>> {
        (self.gradient)(&x.detach(), &y.detach(), upstream).map(Some)
    }
}

impl<G> CustomOp2 for CustomGradient<G>
where
    G: Fn(&Tensor, &Tensor, &Tensor) -> Result<[Option<Tensor>; 2]>,
{
    fn name(&self) -> &'static str {
        NAME
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.take_cpu()
    }

    fn cuda_fwd(
        &self,
        _: &CudaStorage,
        _: &Layout,
        _: &CudaStorage,
        _: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        self.take_cuda()
    }

    fn metal_fwd(
        &self,
        _: &MetalStorage,
        _: &Layout,
        _: &MetalStorage,
        _: &Layout,
    ) -> Result<(MetalStorage, Shape)> {
        self.take_metal()
    }

    fn bwd(
        &self,
        a: &Tensor,
        b: &Tensor,
        _: &Tensor,
        upstream: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let [a, b] = (self.gradient)(&a.detach(), &b.detach(), upstream)?;
        Ok((a, b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{assert_equivalent, random_var};

    #[test]
    fn custom_gradients_match_autograd() {
        let (a, b) = (random_var(&[3, 4], 1), random_var(&[3, 4], 2));
        let custom = || {
            let y = (a.detach() * b.detach())?;
            with_gradients(&a, &b, &y, |a, b, g| Ok([Some((g * b)?), Some((g * a)?)]))
        };
        assert_equivalent(&[a.clone(), b.clone()], custom, || &*a * &*b);
        // The storage offset of the slice is not zero.
        let slice = |x: &Tensor| x.narrow(0, 1, 2);
        let custom = || {
            with_gradient(&a, &slice(&a.sqr()?)?, |a, _, g| {
                let rows = g.pad_with_zeros(0, 1, 0)?;
                rows * (a * 2.0)?
            })
        };
        assert_equivalent(std::slice::from_ref(&a), custom, || slice(&a.sqr()?));
    }

    #[test]
    fn untracked_inputs_get_no_gradient() -> Result<()> {
        let (x, frozen) = (random_var(&[2, 2], 1), random_var(&[2, 2], 2).detach());
        let y = (x.detach() + &frozen)?;
        let sum = with_gradients(&x, &frozen, &y, |_, _, g| Ok([Some(g.clone()), None]))?;
        let gradients = sum.sum_all()?.backward()?;
        assert!(gradients.get(&x).is_some() && gradients.get(&frozen).is_none());
        assert!(!with_gradient(&frozen, &y, |_, _, g| Ok(g.clone()))?.track_op());
        Ok(())
    }
}
