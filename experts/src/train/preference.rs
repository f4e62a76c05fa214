//! Direct preference optimisation: raises the likelihood of the chosen evaluation and lowers that
//! of the rejected one, relative to a frozen reference model (Rafailov et al., 2023, equation 7).
//!
//! The reward tokens of ACE-M³ (§3.4) and `HDCEval` (§3.3) change the completions, not this loss:
//! in `RTDPO` (reward token-based DPO) they are targets, in `ADTO` (attribute-driven token
//! optimization) they are context.

use acem3_kernels::{cross_entropy, log_probabilities};

use super::consistency::{OtherOrder, RowPairs};
use super::loss::{Hits, ShardLoss};
use super::sequence::Sequence;
use super::trainable_model::{Batch, TargetLogits, TrainableModel};
use crate::Error;

/// A prompt with two completions: branch 1 is chosen, branch 2 is rejected.
#[derive(Clone, Debug)]
pub struct PreferenceExample {
    /// The prompt with both completions. The log-likelihood of a completion is the sum over its
    /// targets; their weights are ignored.
    pub sequence: Sequence,
    /// Log-likelihoods of the chosen and the rejected completion under the reference model.
    pub reference_log_likelihoods: [f64; 2],
    /// The chosen completion in the other presentation order, for the consistency of both.
    pub other_order: Option<OtherOrder>,
}

impl PreferenceExample {
    /// Returns the implicit rewards of both completions: `beta` times the log-likelihood ratio of
    /// policy and reference model.
    fn rewards(&self, beta: f64, policy_log_likelihoods: [f64; 2]) -> [f64; 2] {
        [0, 1].map(|i| beta * (policy_log_likelihoods[i] - self.reference_log_likelihoods[i]))
    }
}

/// Hyperparameters of the DPO loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DpoLossConfig {
    /// Scale of the rewards. A high value keeps the policy close to the reference model.
    pub beta: f64,
    /// Weight of the mean negative log-likelihood of the chosen completion, which is added to the
    /// loss (Pang et al., 2024, "Iterative reasoning preference optimization"); `anchor` in
    /// training configurations. If it is zero, training may lower the likelihood of both
    /// completions while their difference grows.
    pub nll_weight: f64,
    /// Weight of the loss of consistency between presentation orders, of examples that have both.
    pub consistency_weight: f64,
}

impl TrainableModel {
    /// Computes the log-likelihoods of the two branches of each sequence.
    pub fn log_likelihoods(&self, batch: &Batch) -> Result<Vec<[f64; 2]>, Error> {
        branch_log_likelihoods(&self.target_logits(batch)?, batch.0.len())
    }

    /// Computes `Σ −log σ(margin)` over preference pairs plus the weighted negative log-likelihood
    /// of the chosen completions and the loss of consistency between presentation orders. The margin is
    /// the difference of the two rewards. A hit is a pair with a positive margin.
    pub fn preference_loss(
        &self,
        pairs: &[PreferenceExample],
        config: DpoLossConfig,
    ) -> Result<ShardLoss, Error> {
        let DpoLossConfig { beta, nll_weight, consistency_weight } = config;
        let other_orders = pairs.iter().filter_map(|pair| pair.other_order.as_ref());
        let sequences = pairs.iter().map(|pair| &pair.sequence);
        let sequences: Vec<Sequence> =
            sequences.chain(other_orders.map(|other| &other.sequence)).cloned().collect();
        let predicted = self.target_logits(&Batch(&sequences))?;
        let log_likelihoods = branch_log_likelihoods(&predicted, pairs.len())?;
        let rewards: Vec<[f64; 2]> = pairs
            .iter()
            .zip(&log_likelihoods)
            .map(|(pair, log_likelihoods)| pair.rewards(beta, *log_likelihoods))
            .collect();
        let margins: Vec<f64> = rewards.iter().map(|r| r[0] - r[1]).collect();
        // Absolute derivative of the loss with respect to each token's log-probability. A
        // cross-entropy with these weights has the gradient of the loss.
        let slopes: Vec<f64> = margins.iter().map(|m| beta * sigmoid(-m)).collect();
        let chosen_weights: Vec<f64> =
            pairs.iter().map(|p| nll_weight / p.sequence.target_count(1).max(1) as f64).collect();
        let weights = predicted.targets.iter().map(|(pair, target)| {
            Ok(match (slopes.get(*pair), branch_index(target.branch)?) {
                // The other presentation order of a pair.
                (None, _) => 0.0,
                (Some(slope), 0) => (slope + chosen_weights[*pair]) as f32,
                (Some(slope), _) => -slope as f32,
            })
        });
        let weights = weights.collect::<Result<Vec<f32>, Error>>()?;
        let chosen_losses = log_likelihoods
            .iter()
            .zip(&chosen_weights)
            .map(|(log_likelihoods, weight)| -weight * log_likelihoods[0]);
        let reward_sum = |i: usize| rewards.iter().map(|r| r[i]).sum();
        let mut surrogate = cross_entropy(&predicted.logits, &predicted.target_tokens(), &weights)?;
        let mut loss_sum =
            margins.iter().map(|m| softplus(-m)).sum::<f64>() + chosen_losses.sum::<f64>();
        let rows = aligned_rows(&predicted, pairs, consistency_weight)?;
        if let Some(consistency) = rows.loss(&predicted.logits)? {
            surrogate = (surrogate + consistency.surrogate)?;
            loss_sum += consistency.loss_sum;
        }
        Ok(ShardLoss {
            surrogate,
            loss_sum,
            weight_sum: pairs.len() as f64,
            hits: Hits {
                correct: margins.iter().filter(|m| **m > 0.0).count() as f64,
                total: pairs.len() as f64,
            },
            rewards: [reward_sum(0), reward_sum(1)],
            tokens: predicted.tokens,
            tape: predicted.tape,
        })
    }
}

/// Returns the rows of chosen completions that predict the same token in both presentation orders. The
/// sequences of the other orders come after those of the pairs.
fn aligned_rows(
    predicted: &TargetLogits,
    pairs: &[PreferenceExample],
    weight: f64,
) -> Result<RowPairs, Error> {
    let mut rows = RowPairs::default();
    if weight <= 0.0 {
        return Ok(rows);
    }
    let chosen_targets = |sequence: usize| {
        let targets = predicted.targets.iter().enumerate();
        let of_sequence = targets.filter(|(_, (i, target))| *i == sequence && target.branch == 1);
        of_sequence.map(|(row, (_, target))| (row, *target)).collect::<Vec<_>>()
    };
    let mut other_sequence = pairs.len();
    for (i, pair) in pairs.iter().enumerate() {
        if let Some(order) = &pair.other_order {
            rows.add(&chosen_targets(i), &chosen_targets(other_sequence), order, weight)?;
            other_sequence += 1;
        }
    }
    Ok(rows)
}

/// Sums the log-probabilities of the targets of each branch of the first `n` sequences.
fn branch_log_likelihoods(predicted: &TargetLogits, n: usize) -> Result<Vec<[f64; 2]>, Error> {
    let log_probs = log_probabilities(&predicted.logits, &predicted.target_tokens())?;
    let mut sums = vec![[0.0; 2]; n];
    for ((sequence, target), log_prob) in predicted.targets.iter().zip(log_probs) {
        if let Some(sums) = sums.get_mut(*sequence) {
            sums[branch_index(target.branch)?] += f64::from(log_prob);
        }
    }
    Ok(sums)
}

/// Returns 0 for the chosen and 1 for the rejected branch.
fn branch_index(branch: u16) -> Result<usize, Error> {
    match branch {
        1 | 2 => Ok(usize::from(branch) - 1),
        _ => {
            Err(Error::Training(format!("preference pair: expected branch 1 or 2, found {branch}")))
        }
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `log(1 + eˣ)` without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_finite_for_extreme_margins() {
        for (margin, loss) in [(0.0, 2f64.ln()), (800.0, 0.0), (-800.0, 800.0)] {
            assert!((softplus(-margin) - loss).abs() < 1e-12, "{margin}");
        }
        assert!((sigmoid(3.0) + sigmoid(-3.0) - 1.0).abs() < 1e-12);
        assert_eq!((sigmoid(-1e4), sigmoid(1e4)), (0.0, 1.0));
    }
}
