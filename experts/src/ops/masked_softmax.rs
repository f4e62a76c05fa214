//! Softmax over the keys that a query may see.

use std::sync::Arc;

use acem3_kernels::{as_f32_slice, with_gradient};
use candle::{CpuStorage, CustomOp1, D, Layout, Result, Shape, Tensor, bail};

/// Which keys each query sees.
#[derive(Clone, Debug)]
pub enum Visibility {
    /// Every query sees the keys up to its own place; the queries are the last of the keys.
    Causal,
    /// Causal, and besides that a token sees only its own sequence, and of that the shared prefix (branch 0) and
    /// its own branch. Several continuations of one prefix can so be computed in one sequence, and several
    /// sequences in one row.
    Branches {
        /// The branch of each token as [`Visibility::branch`] has it, row by row: `b * t` values.
        branches: Arc<[u32]>,
        /// Tokens per row.
        tokens: usize,
    },
}

/// The part of a number that tells a branch from others of its sequence.
const BRANCH: u32 = 0xffff;

impl Visibility {
    /// A branch of the sequence of this number.
    pub fn branch(sequence: u32, branch: u16) -> u32 {
        sequence << 16 | u32::from(branch)
    }
}

/// Softmax of `scores * scale` over the last dimension, where an unseen key weighs zero. With a
/// `window`, a query sees that many keys at most: its own and those next before it.
///
/// # Shapes
/// `scores`: `(b, h_kv, g * t_q, t_k)`, the queries of the `g` heads of a group one after the other;
/// the result has the same shape. Queries are the last `t_q` of the `t_k` places.
pub fn masked_softmax(
    scores: &Tensor,
    queries: usize,
    scale: f32,
    visibility: &Visibility,
    window: Option<usize>,
) -> Result<Tensor> {
    let (b, _, _, keys) = scores.dims4()?;
    // A window that holds all keys hides none of them.
    let window = window.filter(|window| *window < keys);
    if let Visibility::Branches { branches, tokens } = visibility
        && (branches.len() != b * tokens || *tokens != keys || queries != keys)
    {
        bail!(
            "branches of {} tokens do not fit scores {:?}",
            branches.len(),
            scores.shape()
        );
    }
    if window.is_some() && matches!(visibility, Visibility::Branches { .. }) {
        bail!("{keys} tokens in branches exceed the sliding window");
    }
    let op = MaskedSoftmax {
        queries,
        scale,
        visibility: visibility.clone(),
        window,
    };
    if scores.device().is_cpu() {
        return scores.contiguous()?.apply_op1(op);
    }
    op.composed(scores)
}

struct MaskedSoftmax {
    queries: usize,
    scale: f32,
    visibility: Visibility,
    window: Option<usize>,
}

impl MaskedSoftmax {
    /// The first key inside the window of the query at `place`.
    fn first(&self, place: usize) -> usize {
        self.window
            .map_or(0, |window| (place + 1).saturating_sub(window))
    }

    /// Calls `visit` with the visible key ranges' membership test for one query.
    fn sees(&self, row: usize, query: usize, key: usize) -> bool {
        match &self.visibility {
            Visibility::Causal => true,
            Visibility::Branches { branches, tokens } => {
                let (seen, own) = (branches[row * tokens + key], branches[row * tokens + query]);
                // The prefix of a sequence is what its branches have in common.
                seen == own || seen == own & !BRANCH
            }
        }
    }

    /// The same of all queries and keys on a device, to which no more goes than numbers of places and branches.
    ///
    /// # Shapes
    /// `scores`: `(b, h_kv, g * t_q, t_k)` to `(b, 1, g * t_q, t_k)` or `(1, 1, g * t_q, t_k)`.
    fn mask(&self, scores: &Tensor) -> Result<Tensor> {
        let (b, _, rows, keys) = scores.dims4()?;
        let device = scores.device();
        let places: Vec<u32> = (0..rows)
            .map(|i| (keys - self.queries + i % self.queries) as u32)
            .collect();
        let all = Tensor::arange(0, keys as u32, device)?.reshape((1, 1, 1, keys))?;
        let column = |values: Vec<u32>, b: usize| Tensor::from_vec(values, (b, 1, rows, 1), device);
        let mut seen = all.broadcast_le(&column(places.clone(), 1)?)?;
        if self.window.is_some() {
            let first = |place: &u32| self.first(*place as usize) as u32;
            let first = column(places.iter().map(first).collect(), 1)?;
            seen = (seen * all.broadcast_ge(&first)?)?;
        }
        if let Visibility::Branches { branches, tokens } = &self.visibility {
            let own = |row: usize| {
                places
                    .iter()
                    .map(move |p| branches[row * tokens + *p as usize])
            };
            let own: Vec<u32> = (0..b).flat_map(own).collect();
            let prefix = own.iter().map(|own| own & !BRANCH).collect();
            let other = Tensor::from_slice(branches, (b, 1, 1, keys), device)?;
            let same = other.broadcast_eq(&column(own, b)?)?;
            let shared = other.broadcast_eq(&column(prefix, b)?)?;
            seen = seen.broadcast_mul(&same.maximum(&shared)?)?;
        }
        Ok(seen)
    }

    /// What the one pass over the data computes, of candle's operations.
    fn composed(&self, scores: &Tensor) -> Result<Tensor> {
        let scale = f64::from(self.scale);
        let shape = scores.shape();
        let hidden = Tensor::new(f32::NEG_INFINITY, scores.device())?.broadcast_as(shape)?;
        let seen = self.mask(scores)?.broadcast_as(shape)?;
        let scaled = seen.where_cond(&(scores.detach() * scale)?, &hidden)?;
        let weights = scaled
            .broadcast_sub(&scaled.max_keepdim(D::Minus1)?)?
            .exp()?;
        let weights = weights.broadcast_div(&weights.sum_keepdim(D::Minus1)?)?;
        with_gradient(scores, &weights, move |_, weights, upstream| {
            let pulled = (weights * upstream)?;
            let dot = pulled.sum_keepdim(D::Minus1)?;
            (pulled - weights.broadcast_mul(&dot)?)? * scale
        })
    }

    fn row_softmax(&self, row: usize, place: usize, scores: &[f32], out: &mut [f32]) {
        let mut max = f32::NEG_INFINITY;
        let first = self.first(place);
        for (key, score) in scores.iter().enumerate().take(place + 1).skip(first) {
            if self.sees(row, place, key) {
                max = max.max(*score);
            }
        }
        let mut total = 0.0f32;
        for key in first..=place {
            if self.sees(row, place, key) {
                let weight = ((scores[key] - max) * self.scale).exp();
                out[key] = weight;
                total += weight;
            }
        }
        let inverse = 1.0 / total;
        for weight in &mut out[..=place] {
            *weight *= inverse;
        }
    }
}

impl CustomOp1 for MaskedSoftmax {
    fn name(&self) -> &'static str {
        "masked-softmax"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let scores = as_f32_slice(storage, layout, self.name())?;
        let (_, heads, rows, keys) = layout.shape().dims4()?;
        if self.queries == 0 || self.queries > keys || rows % self.queries != 0 {
            bail!(
                "{} queries do not fit scores {:?}",
                self.queries,
                layout.shape()
            );
        }
        let mut out = vec![0.0f32; scores.len()];
        for (i, (scores, out)) in scores
            .chunks_exact(keys)
            .zip(out.chunks_exact_mut(keys))
            .enumerate()
        {
            let place = keys - self.queries + i % self.queries;
            self.row_softmax(i / (heads * rows), place, scores, out);
        }
        Ok((CpuStorage::F32(out), layout.shape().clone()))
    }

    fn bwd(&self, _scores: &Tensor, weights: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let keys = weights.dim(D::Minus1)?;
        let op = SoftmaxBackward {
            keys,
            scale: self.scale,
        };
        Ok(Some(weights.apply_op2_no_bwd(&grad.contiguous()?, &op)?))
    }
}

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
        let rows = weights
            .chunks_exact(self.keys)
            .zip(grad.chunks_exact(self.keys));
        for ((w, g), out) in rows.zip(out.chunks_exact_mut(self.keys)) {
            let dot: f32 = w.iter().zip(g).map(|(w, g)| w * g).sum();
            for ((out, w), g) in out.iter_mut().zip(w).zip(g) {
                *out = w * (g - dot) * self.scale;
            }
        }
        Ok((CpuStorage::F32(out), weights_layout.shape().clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acem3_kernels::to_f32_vec;
    use candle::{Device, Var};

    /// One pass over the data against a composition, values and gradient.
    fn assert_composed(shape: [usize; 4], op: &MaskedSoftmax) -> Result<()> {
        let dev = Device::Cpu;
        let scores = Var::randn(0f32, 1.0, &shape, &dev)?;
        let upstream = Tensor::randn(0f32, 1.0, &shape, &dev)?;
        let close = |a: &Tensor, b: &Tensor| -> Result<bool> {
            let pairs = to_f32_vec(a)?.into_iter().zip(to_f32_vec(b)?);
            Ok(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-6))
        };
        let (queries, visibility) = (op.queries, &op.visibility);
        let fused = masked_softmax(&scores, queries, op.scale, visibility, op.window)?;
        let got = (&fused * &upstream)?.sum_all()?.backward()?;
        let seen = op.mask(&scores)?.broadcast_as(&shape)?;
        let nothing = Tensor::new(f32::NEG_INFINITY, &dev)?.broadcast_as(&shape)?;
        let masked = seen.where_cond(&(scores.as_tensor() * f64::from(op.scale))?, &nothing)?;
        let by_graph = candle_nn::ops::softmax(&masked, D::Minus1)?;
        for other in [op.composed(&scores)?, by_graph] {
            assert!(close(&fused, &other)?);
            let expected = (other * &upstream)?.sum_all()?.backward()?;
            let (Some(expected), Some(got)) = (expected.get(&scores), got.get(&scores)) else {
                panic!("a gradient is missing");
            };
            assert!(close(got, expected)?);
        }
        Ok(())
    }

    #[test]
    fn equals_the_composed_form_forwards_and_backwards() -> Result<()> {
        let of = |(sequence, branch)| Visibility::branch(sequence, branch);
        let two = [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 7)].map(of);
        let op = |queries, visibility, window| MaskedSoftmax {
            queries,
            scale: 0.5,
            visibility,
            window,
        };
        let branches = Visibility::Branches {
            branches: two.into(),
            tokens: 3,
        };
        assert_composed([2, 2, 6, 3], &op(3, branches, None))?;
        assert_composed([2, 1, 4, 5], &op(2, Visibility::Causal, None))?;
        assert_composed([1, 2, 4, 5], &op(4, Visibility::Causal, Some(2)))
    }

    #[test]
    fn a_branch_does_not_see_its_sibling() -> Result<()> {
        let scores = Tensor::zeros((1, 1, 3, 3), candle::DType::F32, &Device::Cpu)?;
        let visibility = Visibility::Branches {
            branches: vec![0, 1, 2].into(),
            tokens: 3,
        };
        let weights = to_f32_vec(&masked_softmax(&scores, 3, 1.0, &visibility, None)?)?;
        assert_eq!(weights, [1.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.5, 0.0, 0.5]);
        Ok(())
    }

    #[test]
    fn a_sequence_does_not_see_another_in_its_row() -> Result<()> {
        let scores = Tensor::zeros((1, 1, 4, 4), candle::DType::F32, &Device::Cpu)?;
        let of = |(sequence, branch)| Visibility::branch(sequence, branch);
        let visibility = Visibility::Branches {
            branches: [(0, 0), (1, 0), (1, 1), (1, 2)].map(of).into(),
            tokens: 4,
        };
        let weights = to_f32_vec(&masked_softmax(&scores, 4, 1.0, &visibility, None)?)?;
        assert_eq!(weights[..8], [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        assert_eq!(weights[8..], [0.0, 0.5, 0.5, 0.0, 0.0, 0.5, 0.0, 0.5]);
        Ok(())
    }

    #[test]
    fn a_window_hides_what_lies_before_it() -> Result<()> {
        let scores = Tensor::zeros((1, 1, 2, 3), candle::DType::F32, &Device::Cpu)?;
        let causal = Visibility::Causal;
        let weights = to_f32_vec(&masked_softmax(&scores, 2, 1.0, &causal, Some(2))?)?;
        assert_eq!(weights, [0.5, 0.5, 0.0, 0.0, 0.5, 0.5]);
        let op = MaskedSoftmax {
            queries: 2,
            scale: 1.0,
            visibility: causal,
            window: Some(2),
        };
        let seen = op.mask(&scores)?.flatten_all()?.to_vec1::<u8>()?;
        let weighed = weights.iter().map(|w| u8::from(*w > 0.0));
        assert_eq!(seen, weighed.collect::<Vec<_>>());
        let branches = Visibility::Branches {
            branches: vec![0, 1, 2].into(),
            tokens: 3,
        };
        let square = Tensor::zeros((1, 1, 3, 3), candle::DType::F32, &Device::Cpu)?;
        assert!(masked_softmax(&square, 3, 1.0, &branches, Some(2)).is_err());
        Ok(())
    }
}
