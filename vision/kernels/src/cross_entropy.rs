//! Weighted cross-entropy of target tokens, without materialising probabilities.

use std::sync::Arc;

use candle::{CpuStorage, CustomOp1, DType, Layout, Result, Shape, Tensor, bail};

use crate::elements::{as_f32_slice, is_cpu_f32, to_f32_vec};

/// Computes `Σ weight · −log p(target)` over all rows, a scalar. Differentiable in `logits`.
///
/// # Shapes
/// `logits` (n, v), `targets` and `weights` of length n.
pub fn cross_entropy(logits: &Tensor, targets: &[u32], weights: &[f32]) -> Result<Tensor> {
    let (n, v) = logits.dims2()?;
    if targets.len() != n || weights.len() != n || targets.iter().any(|t| *t as usize >= v) {
        bail!(
            "cross-entropy: {} targets and {} weights for logits {:?}, expected one per row and targets \
             less than {v}",
            targets.len(),
            weights.len(),
            logits.shape()
        );
    }
    if is_cpu_f32(logits) {
        let op = CrossEntropy { targets: targets.into(), weights: weights.into() };
        return logits.contiguous()?.apply_op1(op);
    }
    cross_entropy_composed(logits, targets, weights)
}

fn cross_entropy_composed(logits: &Tensor, targets: &[u32], weights: &[f32]) -> Result<Tensor> {
    let weights = Tensor::from_slice(weights, weights.len(), logits.device())?;
    (target_log_probabilities(logits, targets)? * weights)?.sum_all()?.neg()
}

/// Computes `log p(target)` of each row, in f32.
///
/// # Shapes
/// (n, v) → (n).
fn target_log_probabilities(logits: &Tensor, targets: &[u32]) -> Result<Tensor> {
    let log_p = candle_nn::ops::log_softmax(&logits.to_dtype(DType::F32)?, 1)?;
    let targets = Tensor::from_slice(targets, (targets.len(), 1), logits.device())?;
    log_p.gather(&targets, 1)?.squeeze(1)
}

/// Computes `log p(target)` of each row, without a gradient.
///
/// # Shapes
/// `logits` (n, v), `targets` of length n.
pub fn log_probabilities(logits: &Tensor, targets: &[u32]) -> Result<Vec<f32>> {
    let v = logits.dim(1)?;
    if !logits.device().is_cpu() {
        return target_log_probabilities(&logits.detach(), targets)?.to_vec1();
    }
    let values = to_f32_vec(&logits.to_dtype(DType::F32)?)?;
    let rows = values.chunks_exact(v).zip(targets);
    rows.map(|(row, target)| {
        let logit = row.get(*target as usize).copied();
        logit.map(|l| l - log_sum_exp(row)).ok_or_else(|| {
            candle::Error::Msg(format!("token {target} is out of range, expected less than {v}"))
        })
    })
    .collect()
}

fn log_sum_exp(row: &[f32]) -> f32 {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    max + row.iter().map(|l| (l - max).exp()).sum::<f32>().ln()
}

struct CrossEntropy {
    targets: Arc<[u32]>,
    weights: Arc<[f32]>,
}

impl CustomOp1 for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross-entropy"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let logits = as_f32_slice(storage, layout, self.name())?;
        let (_, v) = layout.shape().dims2()?;
        let mut total = 0.0f64;
        for (i, row) in logits.chunks_exact(v).enumerate() {
            let loss = log_sum_exp(row) - row[self.targets[i] as usize];
            total += f64::from(loss * self.weights[i]);
        }
        Ok((CpuStorage::F32(vec![total as f32]), Shape::from(())))
    }

    fn bwd(&self, logits: &Tensor, _res: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let upstream = grad.to_scalar::<f32>()?;
        let mut values = to_f32_vec(logits)?;
        let v = logits.dim(1)?;
        for (i, row) in values.chunks_exact_mut(v).enumerate() {
            let norm = log_sum_exp(row);
            let weight = self.weights[i] * upstream;
            for value in row.iter_mut() {
                *value = (*value - norm).exp() * weight;
            }
            row[self.targets[i] as usize] -= weight;
        }
        Ok(Some(Tensor::from_vec(values, logits.shape(), logits.device())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::random_var;

    #[test]
    fn fused_and_composed_cross_entropy_agree() -> Result<()> {
        let logits = random_var(&[3, 5], 1);
        let (targets, weights) = ([4u32, 0, 2], [1.0f32, 0.5, 0.0]);
        let fused = cross_entropy(&logits, &targets, &weights)?;
        let composed = cross_entropy_composed(&logits, &targets, &weights)?;
        assert!((fused.to_scalar::<f32>()? - composed.to_scalar::<f32>()?).abs() < 1e-5);
        let (a, b) = ((&fused * 2.0)?.backward()?, (&composed * 2.0)?.backward()?);
        let (Some(a), Some(b)) = (a.get(&logits), b.get(&logits)) else { panic!("no gradient") };
        let worst = to_f32_vec(&(a - b)?.abs()?)?.into_iter().fold(0.0, f32::max);
        assert!(worst < 1e-5, "difference {worst}");
        let direct = log_probabilities(&logits, &targets)?;
        let composed_log_p = target_log_probabilities(&logits, &targets)?.to_vec1::<f32>()?;
        let error = direct.iter().zip(composed_log_p).map(|(a, b)| (a - b).abs());
        assert!(error.fold(0.0, f32::max) < 1e-5);
        let total: f32 = direct.iter().zip(weights).map(|(l, w)| -l * w).sum();
        assert!((total - composed.to_scalar::<f32>()?).abs() < 1e-4);
        Ok(())
    }
}
