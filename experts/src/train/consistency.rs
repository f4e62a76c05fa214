//! Consistency between the two presentation orders of a pair: predictions that should not depend on which
//! response is shown first.
//!
//! The loss of two distributions `p` and `q` with the mean `m` is `KL(m‖p) + KL(m‖q)`. The mean is a
//! constant for the gradient.

use candle::{D, DType, Tensor};

use super::sequence::{Sequence, TargetToken};
use crate::Error;

/// The chosen evaluation of a pair in the other presentation order.
#[derive(Clone, Debug)]
pub struct OtherOrder {
    /// The prompt with the responses exchanged; branch 1 is the chosen completion.
    pub sequence: Sequence,
    /// Number of targets before the first rating, which are those of a reward token.
    pub lead: usize,
    /// Number of targets about the response that the pair shows first, and the other order second.
    pub first_targets: usize,
}

/// Rows of the logits that predict the same token in both orders.
#[derive(Clone, Debug, Default)]
pub(super) struct RowPairs {
    rows: Vec<u32>,
    other_rows: Vec<u32>,
    weights: Vec<f32>,
}

/// Consistency loss of a batch.
pub(super) struct ConsistencyLoss {
    /// Scalar with the gradient of the loss.
    pub(super) surrogate: Tensor,
    /// Value of the loss.
    pub(super) loss_sum: f64,
}

impl RowPairs {
    /// Adds two rows whose distributions should be equal.
    pub(super) fn push(&mut self, row: u32, other_row: u32, weight: f32) {
        self.rows.push(row);
        self.other_rows.push(other_row);
        self.weights.push(weight);
    }

    /// Adds the targets of a pair. `chosen`, `other`: rows and targets of the chosen completion in both
    /// orders. Each pair of rows has an equal part of `weight`.
    ///
    /// # Errors
    /// If the completions differ in more than the order of the responses.
    pub(super) fn add(
        &mut self,
        chosen: &[(usize, TargetToken)],
        other: &[(usize, TargetToken)],
        order: &OtherOrder,
        weight: f64,
    ) -> Result<(), Error> {
        let (lead, middle) = (order.lead, order.lead + order.first_targets);
        let mismatch =
            || Error::Training("the evaluations in the two orders have other tokens".to_owned());
        if chosen.len() != other.len() || middle > chosen.len() {
            return Err(mismatch());
        }
        // The other order begins with the second response.
        let second = chosen.len() - middle;
        let (first_of_other, second_of_other) =
            other[lead..].split_at_checked(second).ok_or_else(mismatch)?;
        let aligned = chosen[lead..middle]
            .iter()
            .zip(second_of_other)
            .chain(chosen[middle..].iter().zip(first_of_other));
        let share = (weight / (chosen.len() - lead).max(1) as f64) as f32;
        for ((row, target), (other_row, other_target)) in aligned {
            if target.token != other_target.token {
                return Err(mismatch());
            }
            self.push(*row as u32, *other_row as u32, share);
        }
        Ok(())
    }

    /// Computes the weighted loss of all pairs of rows; `None` without one.
    ///
    /// # Shapes
    /// `logits`: one row of the vocabulary for each target.
    pub(super) fn loss(self, logits: &Tensor) -> candle::Result<Option<ConsistencyLoss>> {
        let n = self.rows.len();
        if n == 0 {
            return Ok(None);
        }
        let device = logits.device();
        let log_probabilities = |rows: Vec<u32>| {
            let rows = Tensor::from_vec(rows, n, device)?;
            let logits = logits.index_select(&rows, 0)?.to_dtype(DType::F32)?;
            candle_nn::ops::log_softmax(&logits, D::Minus1)
        };
        let (p, q) = (log_probabilities(self.rows)?, log_probabilities(self.other_rows)?);
        let mean = ((p.detach().exp()? + q.detach().exp()?)? / 2.0)?;
        let weights = Tensor::from_vec(self.weights, n, device)?;
        let cross_entropy = (&mean * (&p + &q)?)?.sum(D::Minus1)?.neg()?;
        let surrogate = (cross_entropy * &weights)?.sum_all()?;
        // A probability of zero contributes nothing.
        let entropy = (&mean * (&mean + 1e-30)?.log()?)?.sum(D::Minus1)?.neg()?;
        let entropy = (entropy * &weights)?.sum_all()?.to_scalar::<f32>()?;
        let value = surrogate.detach().to_scalar::<f32>()? - 2.0 * entropy;
        Ok(Some(ConsistencyLoss { surrogate, loss_sum: f64::from(value) }))
    }
}

#[cfg(test)]
mod tests {
    use candle::{Device, Var};

    use super::*;

    fn targets(tokens: &[u32], first_row: usize) -> Vec<(usize, TargetToken)> {
        let target = |(i, token): (usize, &u32)| {
            (first_row + i, TargetToken { source_index: i, token: *token, weight: 1.0, branch: 1 })
        };
        tokens.iter().enumerate().map(target).collect()
    }

    fn order(lead: usize, first_targets: usize) -> OtherOrder {
        OtherOrder { sequence: Sequence::default(), lead, first_targets }
    }

    #[test]
    fn rows_are_aligned_by_response() {
        // A reward token, two tokens about the first response and three about the second.
        let (chosen, other) = (targets(&[9, 1, 2, 3, 4, 5], 0), targets(&[9, 3, 4, 5, 1, 2], 6));
        let mut pairs = RowPairs::default();
        pairs.add(&chosen, &other, &order(1, 2), 10.0).unwrap();
        assert_eq!(pairs.rows, [1, 2, 3, 4, 5]);
        assert_eq!(pairs.other_rows, [10, 11, 7, 8, 9]);
        assert!(pairs.weights.iter().all(|weight| (weight - 2.0).abs() < 1e-6));
        assert!(pairs.add(&chosen, &other, &order(1, 3), 1.0).is_err());
        assert!(pairs.add(&chosen, &other[..5], &order(1, 2), 1.0).is_err());
        assert!(pairs.add(&chosen, &other, &order(4, 4), 1.0).is_err());
    }

    #[test]
    fn loss_is_zero_for_equal_distributions_and_falls_along_its_gradient() -> candle::Result<()> {
        let device = Device::Cpu;
        let loss = |logits: &Tensor| {
            let rows = RowPairs { rows: vec![0], other_rows: vec![1], weights: vec![1.0] };
            rows.loss(logits).map(Option::unwrap)
        };
        let equal = Tensor::new(&[[1f32, 2.0, 0.5], [1.0, 2.0, 0.5]], &device)?;
        assert!(loss(&equal)?.loss_sum.abs() < 1e-6);
        let logits =
            Var::from_tensor(&Tensor::new(&[[2f32, 0.0, 0.0], [0.0, 1.0, 0.0]], &device)?)?;
        let before = loss(&logits)?;
        // KL(m‖p) + KL(m‖q), computed by hand.
        let softmax = |x: [f64; 3]| {
            let total: f64 = x.iter().map(|v| v.exp()).sum();
            x.map(|v| v.exp() / total)
        };
        let (p, q) = (softmax([2.0, 0.0, 0.0]), softmax([0.0, 1.0, 0.0]));
        let expected: f64 = (0..3)
            .map(|i| {
                let m = f64::midpoint(p[i], q[i]);
                m * (m / p[i]).ln() + m * (m / q[i]).ln()
            })
            .sum();
        assert!((before.loss_sum - expected).abs() < 1e-5, "{} {expected}", before.loss_sum);
        let gradients = before.surrogate.backward()?;
        let gradient = gradients.get(&logits).unwrap();
        let after = loss(&(logits.as_tensor() - (gradient * 0.5)?)?)?;
        assert!(after.loss_sum < before.loss_sum);
        assert!(RowPairs::default().loss(&equal)?.is_none());
        Ok(())
    }
}
