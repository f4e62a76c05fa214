//! Softmax over the keys that a query attends to.

use acem3_kernels::{as_f32_slice, softmax_row, sum_of_products, with_gradient};
use candle::{CpuStorage, CustomOp1, D, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use super::attention_mask::{AttentionMask, BRANCH_BITS};

/// Fewest rows that a thread computes.
const MIN_TASK_ROWS: usize = 64;

/// Computes the softmax of `scores * scale` over the last dimension. Masked keys have weight 0.
/// With a `window`, a query attends to at most that many keys: its own and those directly before
/// it.
///
/// # Shapes
/// `scores`: `(b, h_kv, g * t_q, t_k)`, the queries of the `g` heads of a group one after the
/// other; the result has the same shape. `query_count` is `t_q`; the queries have the last `t_q` of
/// the `t_k` positions.
pub fn masked_softmax(
    scores: &Tensor,
    query_count: usize,
    scale: f32,
    mask: &AttentionMask,
    window: Option<usize>,
) -> Result<Tensor> {
    let (b, _, _, keys) = scores.dims4()?;
    // A window that covers all keys masks nothing.
    let window = window.filter(|window| *window < keys);
    if let AttentionMask::Branches { branch_ids, tokens_per_row } = mask
        && (branch_ids.len() != b * tokens_per_row
            || *tokens_per_row != keys
            || query_count != keys)
    {
        bail!("branch ids of {} tokens do not fit scores {:?}", branch_ids.len(), scores.shape());
    }
    if window.is_some() && matches!(mask, AttentionMask::Branches { .. }) {
        bail!("{keys} tokens in branches exceed the sliding window");
    }
    if let AttentionMask::Bidirectional(ranges) = mask
        && let Some(range) = ranges.iter().find(|range| range.end > keys)
    {
        bail!("bidirectional tokens {range:?} do not fit {keys} keys");
    }
    let op = MaskedSoftmax { query_count, scale, mask: mask.clone(), window };
    if scores.device().is_cpu() {
        return scores.contiguous()?.apply_op1(op);
    }
    op.composed(scores)
}

/// Fused [`masked_softmax`] on the CPU.
struct MaskedSoftmax {
    query_count: usize,
    scale: f32,
    mask: AttentionMask,
    window: Option<usize>,
}

impl MaskedSoftmax {
    /// Returns the first key inside the window of the query at a position.
    fn first_visible_key(&self, position: usize) -> usize {
        self.window.map_or(0, |window| (position + 1).saturating_sub(window))
    }

    /// Returns the position after the last key that the query at a position attends to.
    fn end_of_visible_keys(&self, position: usize) -> usize {
        let range = match &self.mask {
            AttentionMask::Bidirectional(ranges) => {
                ranges.iter().find(|range| range.contains(&position))
            }
            AttentionMask::Causal | AttentionMask::Branches { .. } => None,
        };
        range.map_or(position + 1, |range| range.end)
    }

    /// Returns true if the branches let a query attend to a key. Ignores positions and the window.
    fn is_visible(&self, batch_row: usize, query: usize, key: usize) -> bool {
        match &self.mask {
            AttentionMask::Causal | AttentionMask::Bidirectional(_) => true,
            AttentionMask::Branches { branch_ids, tokens_per_row } => {
                let start = batch_row * tokens_per_row;
                let (key_branch, query_branch) =
                    (branch_ids[start + key], branch_ids[start + query]);
                // All branches of a sequence attend to its prefix, branch 0.
                key_branch == query_branch || key_branch == query_branch & !BRANCH_BITS
            }
        }
    }

    /// Computes the mask of all queries and keys on the device of `scores`. Only positions and
    /// branch ids are copied to the device.
    ///
    /// # Shapes
    /// `scores`: `(b, h_kv, g * t_q, t_k)` to `(b, 1, g * t_q, t_k)` or `(1, 1, g * t_q, t_k)`.
    fn mask_tensor(&self, scores: &Tensor) -> Result<Tensor> {
        let (b, _, query_rows, keys) = scores.dims4()?;
        let device = scores.device();
        let query_positions: Vec<u32> = (0..query_rows)
            .map(|i| (keys - self.query_count + i % self.query_count) as u32)
            .collect();
        let key_positions = Tensor::arange(0, keys as u32, device)?.reshape((1, 1, 1, keys))?;
        let column =
            |values: Vec<u32>, b: usize| Tensor::from_vec(values, (b, 1, query_rows, 1), device);
        let end = |position: &u32| self.end_of_visible_keys(*position as usize) as u32;
        let end = column(query_positions.iter().map(end).collect(), 1)?;
        let mut visible = key_positions.broadcast_lt(&end)?;
        if self.window.is_some() {
            let first = |position: &u32| self.first_visible_key(*position as usize) as u32;
            let first = column(query_positions.iter().map(first).collect(), 1)?;
            visible = (visible * key_positions.broadcast_ge(&first)?)?;
        }
        if let AttentionMask::Branches { branch_ids, tokens_per_row } = &self.mask {
            let branches_of_row = |batch_row: usize| {
                query_positions
                    .iter()
                    .map(move |p| branch_ids[batch_row * tokens_per_row + *p as usize])
            };
            let query_branches: Vec<u32> = (0..b).flat_map(branches_of_row).collect();
            let prefixes = query_branches.iter().map(|id| id & !BRANCH_BITS).collect();
            let key_branches = Tensor::from_slice(branch_ids, (b, 1, 1, keys), device)?;
            let is_same_branch = key_branches.broadcast_eq(&column(query_branches, b)?)?;
            let is_prefix = key_branches.broadcast_eq(&column(prefixes, b)?)?;
            visible = visible.broadcast_mul(&is_same_branch.maximum(&is_prefix)?)?;
        }
        Ok(visible)
    }

    /// Computes [`masked_softmax`] from candle's operations.
    fn composed(&self, scores: &Tensor) -> Result<Tensor> {
        let scale = f64::from(self.scale);
        let shape = scores.shape();
        let masked_out = Tensor::new(f32::NEG_INFINITY, scores.device())?.broadcast_as(shape)?;
        let visible = self.mask_tensor(scores)?.broadcast_as(shape)?;
        let scaled = visible.where_cond(&(scores.detach() * scale)?, &masked_out)?;
        let weights = scaled.broadcast_sub(&scaled.max_keepdim(D::Minus1)?)?.exp()?;
        let weights = weights.broadcast_div(&weights.sum_keepdim(D::Minus1)?)?;
        with_gradient(scores, &weights, move |_, weights, upstream| {
            let weighted = (weights * upstream)?;
            let dot = weighted.sum_keepdim(D::Minus1)?;
            (weighted - weights.broadcast_mul(&dot)?)? * scale
        })
    }

    /// Computes the weights of one query.
    fn query_softmax(&self, batch_row: usize, position: usize, scores: &[f32], out: &mut [f32]) {
        let first = self.first_visible_key(position);
        let visible = first..self.end_of_visible_keys(position);
        let (scores, out) = (&scores[visible.clone()], &mut out[visible]);
        out.copy_from_slice(scores);
        if matches!(self.mask, AttentionMask::Branches { .. }) {
            for (i, weight) in out.iter_mut().enumerate() {
                if !self.is_visible(batch_row, position, first + i) {
                    *weight = f32::NEG_INFINITY;
                }
            }
        }
        softmax_row(out, self.scale);
    }
}

impl CustomOp1 for MaskedSoftmax {
    fn name(&self) -> &'static str {
        "masked-softmax"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let scores = as_f32_slice(storage, layout, self.name())?;
        let (_, heads, query_rows, keys) = layout.shape().dims4()?;
        if self.query_count == 0 || self.query_count > keys || query_rows % self.query_count != 0 {
            bail!("{} queries do not fit scores {:?}", self.query_count, layout.shape());
        }
        let mut out = vec![0.0f32; scores.len()];
        let rows = scores.par_chunks_exact(keys).zip(out.par_chunks_exact_mut(keys));
        rows.with_min_len(MIN_TASK_ROWS).enumerate().for_each(|(i, (scores, out))| {
            let position = keys - self.query_count + i % self.query_count;
            self.query_softmax(i / (heads * query_rows), position, scores, out);
        });
        Ok((CpuStorage::F32(out), layout.shape().clone()))
    }

    fn bwd(&self, _scores: &Tensor, weights: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let keys = weights.dim(D::Minus1)?;
        let op = SoftmaxBackward { keys, scale: self.scale };
        Ok(Some(weights.apply_op2_no_bwd(&grad.contiguous()?, &op)?))
    }
}

/// Gradient of [`MaskedSoftmax`] with respect to the scores.
struct SoftmaxBackward {
    keys: usize,
    scale: f32,
}

impl candle::CustomOp2 for SoftmaxBackward {
    fn name(&self) -> &'static str {
        "masked-softmax-backward"
    }

    fn cpu_fwd(
        &self,
        weights: &CpuStorage,
        weights_layout: &Layout,
        grad: &CpuStorage,
        grad_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let weights = as_f32_slice(weights, weights_layout, self.name())?;
        let grad = as_f32_slice(grad, grad_layout, self.name())?;
        let mut out = vec![0.0f32; weights.len()];
        let rows = weights.par_chunks_exact(self.keys).zip(grad.par_chunks_exact(self.keys));
        let rows = rows.zip(out.par_chunks_exact_mut(self.keys)).with_min_len(MIN_TASK_ROWS);
        rows.for_each(|((w, g), out)| {
            let dot = sum_of_products(w, g);
            for ((out, w), g) in out.iter_mut().zip(w).zip(g) {
                *out = w * (g - dot) * self.scale;
            }
        });
        Ok((CpuStorage::F32(out), weights_layout.shape().clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acem3_kernels::to_f32_vec;
    use candle::{Device, Var};

    /// Compares values and gradients of the fused operation with two versions composed of candle's
    /// operations: one with a custom gradient, and one that candle differentiates.
    fn assert_matches_composed(shape: [usize; 4], op: &MaskedSoftmax) -> Result<()> {
        let device = Device::Cpu;
        let count = shape.iter().product::<usize>() as f32;
        let numbers = Tensor::arange(0f32, count, &device)?.reshape(&shape)?;
        let (scores, upstream) = (Var::from_tensor(&numbers.sin()?)?, numbers.cos()?);
        let is_close = |a: &Tensor, b: &Tensor| -> Result<bool> {
            let pairs = to_f32_vec(a)?.into_iter().zip(to_f32_vec(b)?);
            Ok(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-6))
        };
        let fused = masked_softmax(&scores, op.query_count, op.scale, &op.mask, op.window)?;
        let grads = (&fused * &upstream)?.sum_all()?.backward()?;
        let visible = op.mask_tensor(&scores)?.broadcast_as(&shape)?;
        let masked_out = Tensor::new(f32::NEG_INFINITY, &device)?.broadcast_as(&shape)?;
        let scaled = (scores.as_tensor() * f64::from(op.scale))?;
        let masked = visible.where_cond(&scaled, &masked_out)?;
        let by_autodiff = candle_nn::ops::softmax(&masked, D::Minus1)?;
        for other in [op.composed(&scores)?, by_autodiff] {
            assert!(is_close(&fused, &other)?);
            let expected = (other * &upstream)?.sum_all()?.backward()?;
            let (Some(expected), Some(grad)) = (expected.get(&scores), grads.get(&scores)) else {
                panic!("a gradient is missing");
            };
            assert!(is_close(grad, expected)?);
        }
        Ok(())
    }

    #[test]
    fn fused_values_and_gradients_match_composed() -> Result<()> {
        let id = |(sequence, branch)| AttentionMask::branch_id(sequence, branch);
        let two_rows = [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 7)].map(id);
        let op =
            |query_count, mask, window| MaskedSoftmax { query_count, scale: 0.5, mask, window };
        let branches = AttentionMask::Branches { branch_ids: two_rows.into(), tokens_per_row: 3 };
        assert_matches_composed([2, 2, 6, 3], &op(3, branches, None))?;
        assert_matches_composed([2, 1, 4, 5], &op(2, AttentionMask::Causal, None))?;
        assert_matches_composed([1, 2, 4, 5], &op(4, AttentionMask::Causal, Some(2)))?;
        let ranges = AttentionMask::Bidirectional([1..3, 4..5].into());
        assert_matches_composed([1, 2, 4, 5], &op(4, ranges, Some(2)))
    }

    #[test]
    fn branch_does_not_attend_to_its_sibling() -> Result<()> {
        let scores = Tensor::zeros((1, 1, 3, 3), candle::DType::F32, &Device::Cpu)?;
        let mask = AttentionMask::Branches { branch_ids: vec![0, 1, 2].into(), tokens_per_row: 3 };
        let weights = to_f32_vec(&masked_softmax(&scores, 3, 1.0, &mask, None)?)?;
        assert_eq!(weights, [1.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.5, 0.0, 0.5]);
        Ok(())
    }

    #[test]
    fn sequence_does_not_attend_to_another_in_its_row() -> Result<()> {
        let scores = Tensor::zeros((1, 1, 4, 4), candle::DType::F32, &Device::Cpu)?;
        let id = |(sequence, branch)| AttentionMask::branch_id(sequence, branch);
        let mask = AttentionMask::Branches {
            branch_ids: [(0, 0), (1, 0), (1, 1), (1, 2)].map(id).into(),
            tokens_per_row: 4,
        };
        let weights = to_f32_vec(&masked_softmax(&scores, 4, 1.0, &mask, None)?)?;
        assert_eq!(weights[..8], [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        assert_eq!(weights[8..], [0.0, 0.5, 0.5, 0.0, 0.0, 0.5, 0.0, 0.5]);
        Ok(())
    }

    #[test]
    fn window_masks_earlier_keys() -> Result<()> {
        let scores = Tensor::zeros((1, 1, 2, 3), candle::DType::F32, &Device::Cpu)?;
        let causal = AttentionMask::Causal;
        let weights = to_f32_vec(&masked_softmax(&scores, 2, 1.0, &causal, Some(2))?)?;
        assert_eq!(weights, [0.5, 0.5, 0.0, 0.0, 0.5, 0.5]);
        let op = MaskedSoftmax { query_count: 2, scale: 1.0, mask: causal, window: Some(2) };
        let visible = op.mask_tensor(&scores)?.flatten_all()?.to_vec1::<u8>()?;
        let has_weight = weights.iter().map(|w| u8::from(*w > 0.0));
        assert_eq!(visible, has_weight.collect::<Vec<_>>());
        let branches =
            AttentionMask::Branches { branch_ids: vec![0, 1, 2].into(), tokens_per_row: 3 };
        let square = Tensor::zeros((1, 1, 3, 3), candle::DType::F32, &Device::Cpu)?;
        assert!(masked_softmax(&square, 3, 1.0, &branches, Some(2)).is_err());
        Ok(())
    }
}
