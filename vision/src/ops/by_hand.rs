//! Gradients written by hand, on any device.
//!
//! candle's composed operations remember every value on the way, and compute the gradients of constants too: of
//! frozen weights, masks and tables. Here a result is computed without a graph, and its gradient from the inputs
//! when it is asked for.

use std::sync::{Mutex, PoisonError};

use candle::backend::BackendStorage as _;
use candle::{
    CpuStorage, CudaStorage, CustomOp1, CustomOp2, Layout, MetalStorage, Result, Shape, Storage,
    Tensor, bail,
};

/// `y`, which was computed from `x`, with the gradient that `gradient` makes of `x`, `y` and the gradient of `y`.
///
/// # Shapes
/// `y` any → the same; `gradient` gives that of `x`.
pub fn of_one<G>(x: &Tensor, y: &Tensor, gradient: G) -> Result<Tensor>
where
    G: Fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor> + Send + Sync + 'static,
{
    if x.track_op() {
        x.apply_op1(ByHand::new(y, gradient)?)
    } else {
        Ok(y.detach())
    }
}

/// `y`, which was computed from `a` and `b`, with the gradients that `gradient` makes of `a`, `b` and the gradient of
/// `y`. That of an input without a graph is not wanted, and need not be computed.
///
/// # Shapes
/// `y` any → the same; `gradient` gives those of `a` and `b`.
pub fn of_two<G>(a: &Tensor, b: &Tensor, y: &Tensor, gradient: G) -> Result<Tensor>
where
    G: Fn(&Tensor, &Tensor, &Tensor) -> Result<[Option<Tensor>; 2]> + Send + Sync + 'static,
{
    if a.track_op() || b.track_op() {
        a.apply_op2(b, ByHand::new(y, gradient)?)
    } else {
        Ok(y.detach())
    }
}

/// An operation that was computed before it enters the graph.
struct ByHand<G> {
    /// Taken by the forward pass, so that the graph holds the result once.
    result: Mutex<Option<Tensor>>,
    gradient: G,
}

impl<G> ByHand<G> {
    fn new(y: &Tensor, gradient: G) -> Result<Self> {
        let mut y = y.detach().contiguous()?;
        if y.layout().start_offset() != 0 {
            y = y.force_contiguous()?;
        }
        Ok(Self {
            result: Mutex::new(Some(y)),
            gradient,
        })
    }

    fn take(&self) -> Result<Tensor> {
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        match result.take() {
            Some(y) => Ok(y),
            None => bail!("a result computed by hand was taken before"),
        }
    }

    fn cpu(&self) -> Result<(CpuStorage, Shape)> {
        let y = self.take()?;
        let (storage, layout) = y.storage_and_layout();
        match &*storage {
            Storage::Cpu(y) => Ok((y.try_clone(layout)?, layout.shape().clone())),
            _ => bail!("{} and its input lie on different devices", name()),
        }
    }

    fn cuda(&self) -> Result<(CudaStorage, Shape)> {
        let y = self.take()?;
        let (storage, layout) = y.storage_and_layout();
        match &*storage {
            Storage::Cuda(y) => Ok((y.try_clone(layout)?, layout.shape().clone())),
            _ => bail!("{} and its input lie on different devices", name()),
        }
    }

    fn metal(&self) -> Result<(MetalStorage, Shape)> {
        let y = self.take()?;
        let (storage, layout) = y.storage_and_layout();
        match &*storage {
            Storage::Metal(y) => Ok((y.try_clone(layout)?, layout.shape().clone())),
            _ => bail!("{} and its input lie on different devices", name()),
        }
    }
}

fn name() -> &'static str {
    "by-hand"
}

impl<G> CustomOp1 for ByHand<G>
where
    G: Fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>,
{
    fn name(&self) -> &'static str {
        name()
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        self.cpu()
    }

    fn cuda_fwd(&self, _: &CudaStorage, _: &Layout) -> Result<(CudaStorage, Shape)> {
        self.cuda()
    }

    fn metal_fwd(&self, _: &MetalStorage, _: &Layout) -> Result<(MetalStorage, Shape)> {
        self.metal()
    }

    fn bwd(&self, x: &Tensor, y: &Tensor, upstream: &Tensor) -> Result<Option<Tensor>> {
        (self.gradient)(&x.detach(), &y.detach(), upstream).map(Some)
    }
}

impl<G> CustomOp2 for ByHand<G>
where
    G: Fn(&Tensor, &Tensor, &Tensor) -> Result<[Option<Tensor>; 2]>,
{
    fn name(&self) -> &'static str {
        name()
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.cpu()
    }

    fn cuda_fwd(
        &self,
        _: &CudaStorage,
        _: &Layout,
        _: &CudaStorage,
        _: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        self.cuda()
    }

    fn metal_fwd(
        &self,
        _: &MetalStorage,
        _: &Layout,
        _: &MetalStorage,
        _: &Layout,
    ) -> Result<(MetalStorage, Shape)> {
        self.metal()
    }

    fn bwd(
        &self,
        a: &Tensor,
        b: &Tensor,
        _: &Tensor,
        upstream: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let [of_a, of_b] = (self.gradient)(&a.detach(), &b.detach(), upstream)?;
        Ok((of_a, of_b))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{numbers, same};
    use super::*;

    #[test]
    fn a_gradient_by_hand_is_that_of_the_graph() {
        let (a, b) = (numbers(&[3, 4], 1), numbers(&[3, 4], 2));
        let by_hand = || {
            let y = (a.detach() * b.detach())?;
            of_two(&a, &b, &y, |a, b, g| Ok([Some((g * b)?), Some((g * a)?)]))
        };
        same(&[a.clone(), b.clone()], by_hand, || &*a * &*b);
        // A part of a larger tensor, which does not begin where that does.
        let part = |x: &Tensor| x.narrow(0, 1, 2);
        let by_hand = || {
            of_one(&a, &part(&a.sqr()?)?, |a, _, g| {
                let rows = g.pad_with_zeros(0, 1, 0)?;
                rows * (a * 2.0)?
            })
        };
        same(std::slice::from_ref(&a), by_hand, || part(&a.sqr()?));
    }

    #[test]
    fn what_has_no_graph_gets_none() -> Result<()> {
        let (x, frozen) = (numbers(&[2, 2], 1), numbers(&[2, 2], 2).detach());
        let y = (x.detach() + &frozen)?;
        let sum = of_two(&x, &frozen, &y, |_, _, g| Ok([Some(g.clone()), None]))?;
        let gradients = sum.sum_all()?.backward()?;
        assert!(gradients.get(&x).is_some() && gradients.get(&frozen).is_none());
        assert!(!of_one(&frozen, &y, |_, _, g| Ok(g.clone()))?.track_op());
        Ok(())
    }
}
