//! Root-mean-square normalisation (Llama's `LlamaRMSNorm` in transformers' `modeling_llama.py`).

use candle::{CpuStorage, CustomOp2, D, DType, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use crate::custom_gradient::with_gradients;
use crate::elements::{ROW_BLOCK, as_f32_slice, is_cpu_f32, to_f32_vec};
use crate::gpu::layers;
use crate::reduce::sum_of_products;

/// `x / sqrt(mean(x²) + eps) * weight`.
///
/// # Shapes
/// `x`: `(..., c)`, `weight`: `(c)`; the result has the shape of `x`.
pub fn rms_norm(x: &Tensor, weight: &Tensor, eps: f64) -> Result<Tensor> {
    rms_norm_to(x, weight, eps, x.dtype())
}

/// Computes [`rms_norm`] with a result of the type `dtype`.
///
/// # Shapes
/// As [`rms_norm`].
pub fn rms_norm_to(x: &Tensor, weight: &Tensor, eps: f64, dtype: DType) -> Result<Tensor> {
    if let Some(y) = layers::rms_norm(x, weight, eps, dtype)? {
        return Ok(y);
    }
    let y = if is_cpu_f32(x) {
        x.contiguous()?.apply_op2(weight, RmsNorm { eps: eps as f32 })?
    } else {
        composed(x, weight, eps)?
    };
    y.to_dtype(dtype)
}

/// Computes [`rms_norm`] from candle's operations.
fn composed(x: &Tensor, weight: &Tensor, eps: f64) -> Result<Tensor> {
    let inverse_root = move |x: &Tensor| {
        let mean = x.sqr()?.mean_keepdim(D::Minus1)?;
        (mean + eps)?.sqrt()?.recip()
    };
    let detached = x.detach();
    let normed = detached.broadcast_mul(&inverse_root(&detached)?)?;
    let y = normed.broadcast_mul(&weight.detach())?;
    let needs_weight_gradient = weight.track_op();
    with_gradients(x, weight, &y, move |x, weight, upstream| {
        let (scale, c) = (inverse_root(x)?, x.dim(D::Minus1)?);
        let inner = upstream.broadcast_mul(weight)?;
        let dot = (x * &inner)?.sum_keepdim(D::Minus1)?;
        let x_coefficient = ((dot * scale.powf(3.0)?)? / c as f64)?;
        let dx = (inner.broadcast_mul(&scale)? - x.broadcast_mul(&x_coefficient)?)?;
        let dw = || {
            let rows = (upstream * x.broadcast_mul(&scale)?)?;
            rows.reshape(((), c))?.sum(0)
        };
        Ok([Some(dx), needs_weight_gradient.then(dw).transpose()?])
    })
}

/// Fused [`rms_norm`] on the CPU.
struct RmsNorm {
    eps: f32,
}

impl RmsNorm {
    /// Returns `1 / sqrt(mean(row²) + eps)`.
    fn inverse_root(&self, row: &[f32]) -> f32 {
        let squares = sum_of_products(row, row);
        1.0 / (squares / row.len() as f32 + self.eps).sqrt()
    }
}

impl CustomOp2 for RmsNorm {
    fn name(&self) -> &'static str {
        "rms-norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let x = as_f32_slice(x, x_layout, self.name())?;
        let weight = as_f32_slice(weight, weight_layout, self.name())?;
        if weight.is_empty() || x.len() % weight.len() != 0 {
            bail!(
                "rms-norm: expected rows of {} elements, found shape {:?}",
                weight.len(),
                x_layout.shape()
            );
        }
        let c = weight.len();
        let mut out = vec![0.0; x.len()];
        out.par_chunks_mut(ROW_BLOCK * c).zip(x.par_chunks(ROW_BLOCK * c)).for_each(|(out, x)| {
            for (out, row) in out.chunks_exact_mut(c).zip(x.chunks_exact(c)) {
                let scale = self.inverse_root(row);
                for ((out, x), weight) in out.iter_mut().zip(row).zip(weight) {
                    *out = x * scale * weight;
                }
            }
        });
        Ok((CpuStorage::F32(out), x_layout.shape().clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        weight: &Tensor,
        _res: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (xs, ws, gs) = (to_f32_vec(x)?, to_f32_vec(weight)?, to_f32_vec(grad)?);
        let c = ws.len();
        let mut dx = Vec::with_capacity(xs.len());
        let mut dw = vec![0.0f32; c];
        for (row, g_row) in xs.chunks_exact(c).zip(gs.chunks_exact(c)) {
            let scale = self.inverse_root(row);
            let mut dot = 0.0f32;
            for ((v, g), (w, dw_sum)) in row.iter().zip(g_row).zip(ws.iter().zip(&mut dw)) {
                dot += v * g * w;
                *dw_sum += g * v * scale;
            }
            let x_coefficient = dot * scale * scale * scale / c as f32;
            dx.extend(
                row.iter().zip(g_row).zip(&ws).map(|((v, g), w)| g * w * scale - v * x_coefficient),
            );
        }
        let dx = Tensor::from_vec(dx, x.shape(), x.device())?;
        Ok((Some(dx), Some(Tensor::from_vec(dw, c, x.device())?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{random_tensor, random_var};

    #[test]
    fn fused_values_and_gradients_match_composed() -> Result<()> {
        let x = random_var(&[3, 4, 8], 1);
        let w = random_var(&[8], 2);
        let upstream = random_tensor(&[3, 4, 8], 3);
        let (fused, composed) = (rms_norm(&x, &w, 1e-5)?, composed(&x, &w, 1e-5)?);
        let (fused_grads, composed_grads) = (
            (&fused * &upstream)?.sum_all()?.backward()?,
            (&composed * &upstream)?.sum_all()?.backward()?,
        );
        let mut pairs = vec![(fused, composed)];
        for var in [&x, &w] {
            let grads = fused_grads.get(var).zip(composed_grads.get(var));
            pairs.push(
                grads
                    .map(|(a, b)| (a.clone(), b.clone()))
                    .ok_or_else(|| candle::Error::Msg("a gradient is missing".to_owned()))?,
            );
        }
        for (a, b) in pairs {
            let max_difference = to_f32_vec(&(a - b)?.abs()?)?.into_iter().fold(0.0, f32::max);
            assert!(max_difference < 1e-5, "difference {max_difference}");
        }
        Ok(())
    }
}
