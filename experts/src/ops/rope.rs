//! Rotary position embedding in Llama's half-rotation layout
//! (`apply_rotary_pos_emb` in transformers' `modeling_llama.py`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use acem3_kernels::{as_f32_slice, with_gradient};
use candle::{
    CpuStorage, CustomOp1, DType, Device, DeviceLocation, Layout, Result, Shape, Tensor, bail,
};
use rayon::prelude::*;

/// Cosines and sines of the rotary angles for each position of a context.
///
/// Equal tables share memory, and only the first is computed: those of Gemma 3 take 268 MB, and each
/// member of a panel needs them.
#[derive(Clone, Debug)]
pub struct RotaryTables(Arc<Angles>);

/// Cosines and sines.
#[derive(Debug)]
struct Angles {
    /// Positions per radian of each pair.
    periods: Vec<f64>,
    /// `context` rows of `half` values.
    cos: Vec<f32>,
    /// `context` rows of `half` values.
    sin: Vec<f32>,
    /// Half of the head size: the number of rotated pairs.
    half: usize,
    /// Number of positions.
    context: usize,
    /// Copies of the tables on GPUs.
    on_devices: Mutex<Vec<(DeviceLocation, [Tensor; 2])>>,
}

/// Tables that are in use.
static SHARED_TABLES: Mutex<Vec<Weak<Angles>>> = Mutex::new(Vec::new());

fn shared_tables() -> MutexGuard<'static, Vec<Weak<Angles>>> {
    // A thread that panicked while it held the lock left a complete list.
    SHARED_TABLES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Angles {
    /// Returns tables that are in use.
    fn find_shared(periods: &[f64], context: usize) -> Option<Arc<Self>> {
        let mut shared = shared_tables();
        shared.retain(|angles| angles.strong_count() > 0);
        let is_equal = |angles: &Arc<Self>| angles.context == context && angles.periods == periods;
        shared.iter().filter_map(Weak::upgrade).find(is_equal)
    }

    fn new(periods: Vec<f64>, context: usize) -> Self {
        let half = periods.len();
        let table = |function: fn(f64) -> f64| {
            let mut table = vec![0f32; context * half];
            let rows = table.par_chunks_exact_mut(half.max(1)).enumerate();
            rows.for_each(|(position, row)| {
                for (value, period) in row.iter_mut().zip(&periods) {
                    *value = function(position as f64 / period) as f32;
                }
            });
            table
        };
        let (cos, sin) = (table(f64::cos), table(f64::sin));
        Self { cos, sin, half, context, periods, on_devices: Mutex::default() }
    }

    /// Returns the copies of the tables on a device, each `(context, d / 2)`. All users share them.
    fn on_device(&self, device: &Device) -> Result<[Tensor; 2]> {
        // A thread that panicked while it held the lock left a complete list.
        let mut copies = self.on_devices.lock().unwrap_or_else(PoisonError::into_inner);
        let location = device.location();
        if let Some((_, tables)) = copies.iter().find(|(place, _)| *place == location) {
            return Ok(tables.clone());
        }
        let copy = |table: &[f32]| Tensor::from_slice(table, (self.context, self.half), device);
        let tables = [copy(&self.cos)?, copy(&self.sin)?];
        copies.push((location, tables.clone()));
        Ok(tables)
    }
}

impl RotaryTables {
    /// Computes tables for heads of size `d` and `context` positions, with base `theta`.
    pub fn new(d: usize, context: usize, theta: f64) -> Self {
        Self::with_scaled_periods(d, context, theta, |_, period| period)
    }

    /// Computes tables with scaled periods. `scale_period` maps the index of a pair and its period
    /// (positions per radian) to the scaled period.
    pub fn with_scaled_periods(
        d: usize,
        context: usize,
        theta: f64,
        scale_period: impl Fn(usize, f64) -> f64,
    ) -> Self {
        let half = d / 2;
        let period = |pair: usize| scale_period(pair, theta.powf(2.0 * pair as f64 / d as f64));
        let periods: Vec<f64> = (0..half).map(period).collect();
        if let Some(angles) = Angles::find_shared(&periods, context) {
            return Self(angles);
        }
        // Computed without the lock, which the thread pool could need.
        let angles = Arc::new(Angles::new(periods, context));
        shared_tables().push(Arc::downgrade(&angles));
        Self(angles)
    }

    /// Returns all cosines and sines on a device, each `(context, d / 2)`.
    pub(crate) fn on_device(&self, device: &Device) -> Result<[Tensor; 2]> {
        self.0.on_device(device)
    }

    /// Returns the cosines and sines of positions, each `(n, 1, d / 2)`.
    fn select_rows(&self, positions: &[u32], device: &Device) -> Result<(Tensor, Tensor)> {
        let half = self.0.half;
        let select = |table: &[f32]| {
            let rows = positions.iter().flat_map(|p| {
                let start = *p as usize * half;
                table[start..start + half].iter().copied()
            });
            Tensor::from_vec(rows.collect::<Vec<_>>(), (positions.len(), 1, half), device)
        };
        Ok((select(&self.0.cos)?, select(&self.0.sin)?))
    }
}

/// Rotates each head of each token by its position.
///
/// # Shapes
/// `x`: `(n, h, d)` with one position for each of the `n` tokens; the result has the same shape.
pub fn rope(x: &Tensor, positions: &Arc<[u32]>, rotary: &RotaryTables) -> Result<Tensor> {
    let (n, _, d) = x.dims3()?;
    if positions.len() != n || d != rotary.0.half * 2 {
        bail!("{} positions and head size {d} do not fit {:?}", positions.len(), x.shape());
    }
    if let Some(position) = positions.iter().find(|p| **p as usize >= rotary.0.context) {
        bail!("position {position} exceeds the model's context of {} tokens", rotary.0.context);
    }
    if x.device().is_cpu() && x.dtype() == DType::F32 {
        let op = Rope { positions: positions.clone(), rotary: rotary.clone(), is_inverse: false };
        return x.contiguous()?.apply_op1(op);
    }
    composed(x, positions, rotary)
}

/// Computes [`rope`] from candle's operations.
fn composed(x: &Tensor, positions: &[u32], rotary: &RotaryTables) -> Result<Tensor> {
    let (cos, sin) = rotary.select_rows(positions, x.device())?;
    let half = rotary.0.half;
    let rotate = move |x: &Tensor, sin: &Tensor| {
        let (first, second) = (x.narrow(2, 0, half)?, x.narrow(2, half, half)?);
        let rotated_first = (first.broadcast_mul(&cos)? - second.broadcast_mul(sin)?)?;
        let rotated_second = (second.broadcast_mul(&cos)? + first.broadcast_mul(sin)?)?;
        Tensor::cat(&[rotated_first, rotated_second], 2)
    };
    let y = rotate(&x.detach(), &sin)?;
    // The gradient of a rotation is the inverse rotation.
    with_gradient(x, &y, move |_, _, upstream| rotate(upstream, &sin.neg()?))
}

/// Fused [`rope`] on the CPU.
struct Rope {
    positions: Arc<[u32]>,
    rotary: RotaryTables,
    /// Rotates by the negative angles.
    is_inverse: bool,
}

impl CustomOp1 for Rope {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = as_f32_slice(storage, layout, self.name())?;
        let (_, h, d) = layout.shape().dims3()?;
        let angles = &*self.rotary.0;
        let half = angles.half;
        let sign = if self.is_inverse { -1.0 } else { 1.0 };
        let mut out = vec![0.0f32; x.len()];
        let rows = x.chunks_exact(h * d).zip(out.chunks_exact_mut(h * d));
        for (position, (x, out)) in self.positions.iter().zip(rows) {
            let start = *position as usize * half;
            let cos = &angles.cos[start..start + half];
            let sin = &angles.sin[start..start + half];
            for (x, out) in x.chunks_exact(d).zip(out.chunks_exact_mut(d)) {
                let (first, second) = x.split_at(half);
                let (out_first, out_second) = out.split_at_mut(half);
                for i in 0..half {
                    let sin = sin[i] * sign;
                    out_first[i] = first[i] * cos[i] - second[i] * sin;
                    out_second[i] = second[i] * cos[i] + first[i] * sin;
                }
            }
        }
        Ok((CpuStorage::F32(out), layout.shape().clone()))
    }

    fn bwd(&self, _x: &Tensor, _res: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let op = Self {
            positions: self.positions.clone(),
            rotary: self.rotary.clone(),
            is_inverse: !self.is_inverse,
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
    fn fused_values_and_gradients_match_composed() -> Result<()> {
        let rotary = RotaryTables::new(6, 16, 10_000.0);
        let numbers = Tensor::arange(0f32, 48., &Device::Cpu)?.reshape((4, 2, 6))?;
        let (x, upstream) = (Var::from_tensor(&numbers.sin()?)?, numbers.cos()?);
        let positions: Arc<[u32]> = vec![0, 3, 15, 7].into();
        let (fused, composed) =
            (rope(&x, &positions, &rotary)?, composed(&x, &positions, &rotary)?);
        let grads = [&fused, &composed].map(|y| (y * &upstream)?.sum_all()?.backward());
        let [fused_grads, composed_grads] = grads;
        let (fused_grads, composed_grads) = (fused_grads?, composed_grads?);
        let grads = (fused_grads.get(&x), composed_grads.get(&x));
        let (Some(fused_grad), Some(composed_grad)) = grads else { panic!("no gradient") };
        for (a, b) in [(&fused, &composed), (fused_grad, composed_grad)] {
            let max_difference = to_f32_vec(&(a - b)?.abs()?)?.into_iter().fold(0.0, f32::max);
            assert!(max_difference < 1e-5, "difference {max_difference}");
        }
        Ok(())
    }

    #[test]
    fn equal_tables_share_memory() {
        let table = RotaryTables::new(8, 33, 500.0);
        assert!(Arc::ptr_eq(&table.0, &RotaryTables::new(8, 33, 500.0).0));
        for other in [RotaryTables::new(8, 33, 501.0), RotaryTables::new(8, 34, 500.0)] {
            assert!(!Arc::ptr_eq(&table.0, &other.0));
        }
    }

    #[test]
    fn position_outside_context_is_an_error() -> Result<()> {
        let x = Tensor::zeros((1, 1, 4), DType::F32, &Device::Cpu)?;
        assert!(rope(&x, &vec![8].into(), &RotaryTables::new(4, 8, 10_000.0)).is_err());
        Ok(())
    }
}
