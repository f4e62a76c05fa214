//! Learning from preferences: an evaluation is to become likelier, and a worse one unlikelier, than
//! the model that training began with has them (Rafailov et al., 2023, equation 7).
//!
//! The reward tokens of ACE-M³ (§3.4) and `HDCEval` (§3.3) change what a continuation consists of, not
//! this loss: in `RTDPO` they are targets, in `ADTO` they are context.

use acem3_kernels::{cross_entropy, log_probabilities};

use super::loss::{Hits, Loss};
use super::sequence::Sequence;
use super::student::{Batch, Predicted, Student};
use crate::Error;

/// A prompt with two continuations: branch 1 is preferred, branch 2 rejected.
#[derive(Clone, Debug)]
pub struct Preference {
    /// Both continuations after the prompt. The log-likelihood of one is that of its targets; their
    /// weights do not matter.
    pub sequence: Sequence,
    /// The log-likelihoods of both under the model that training began with.
    pub reference: [f64; 2],
}

impl Preference {
    /// The rewards of both: how much likelier each is than it was.
    fn rewards(&self, beta: f64, now: [f64; 2]) -> [f64; 2] {
        [0, 1].map(|side| beta * (now[side] - self.reference[side]))
    }
}

/// The constants of the loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PreferenceLoss {
    /// How dear it is to leave the reference.
    pub beta: f64,
    /// The weight of the preferred continuation's own loss, the mean over its tokens, beside that of the
    /// preference (Pang et al., 2024, "Iterative reasoning preference optimization"). Without it both continuations may become
    /// unlikely as long as their difference grows.
    pub anchor: f64,
}

impl Student {
    /// The log-likelihoods of both branches of sequences, as a reference keeps them.
    pub fn log_likelihoods(&self, batch: &Batch) -> Result<Vec<[f64; 2]>, Error> {
        sums(&self.predict(batch)?, batch.0.len())
    }

    /// `Σ −log σ(margin)` over preferences, the margin being the difference of the two rewards, and
    /// what anchors it. What is told of it: how many are in order, and the sums of the rewards.
    pub fn preference_loss(
        &self,
        pairs: &[Preference],
        constants: PreferenceLoss,
    ) -> Result<Loss, Error> {
        let PreferenceLoss { beta, anchor } = constants;
        let sequences: Vec<Sequence> = pairs.iter().map(|pair| pair.sequence.clone()).collect();
        let predicted = self.predict(&Batch(&sequences))?;
        let now = sums(&predicted, pairs.len())?;
        let rewards = pairs.iter().zip(&now);
        let rewards: Vec<[f64; 2]> = rewards
            .map(|(pair, now)| pair.rewards(beta, *now))
            .collect();
        let margins: Vec<f64> = rewards.iter().map(|r| r[0] - r[1]).collect();
        // The loss depends on each token's log-probability with this slope alone, so that a weighted
        // sum of them has its gradient.
        let slopes: Vec<f64> = margins.iter().map(|m| beta * sigmoid(-m)).collect();
        let preferred = sequences
            .iter()
            .map(|s| anchor / s.targets_of(1).max(1) as f64);
        let preferred: Vec<f64> = preferred.collect();
        let weights = predicted.rows.iter().map(|(row, target)| {
            Ok(match side(target.branch)? {
                0 => (slopes[*row] + preferred[*row]) as f32,
                _ => -slopes[*row] as f32,
            })
        });
        let weights = weights.collect::<Result<Vec<f32>, Error>>()?;
        let anchored = now
            .iter()
            .zip(&preferred)
            .map(|(now, weight)| -weight * now[0]);
        let total = |side: usize| rewards.iter().map(|r| r[side]).sum();
        Ok(Loss {
            sum: cross_entropy(&predicted.logits, &predicted.wanted(), &weights)?,
            value: margins.iter().map(|m| softplus(-m)).sum::<f64>() + anchored.sum::<f64>(),
            weight: pairs.len() as f64,
            hits: Hits {
                correct: margins.iter().filter(|m| **m > 0.0).count() as f64,
                total: pairs.len() as f64,
            },
            rewards: [total(0), total(1)],
            tokens: predicted.tokens,
            tape: predicted.tape,
        })
    }
}

/// The log-likelihoods of the branches of `n` sequences.
fn sums(predicted: &Predicted, n: usize) -> Result<Vec<[f64; 2]>, Error> {
    let likely = log_probabilities(&predicted.logits, &predicted.wanted())?;
    let mut sums = vec![[0.0; 2]; n];
    for ((row, target), likely) in predicted.rows.iter().zip(likely) {
        sums[*row][side(target.branch)?] += f64::from(likely);
    }
    Ok(sums)
}

fn side(branch: u16) -> Result<usize, Error> {
    match branch {
        1 | 2 => Ok(usize::from(branch) - 1),
        _ => Err(Error::Training(format!(
            "a preference has a branch {branch}, expected two continuations"
        ))),
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
    fn the_loss_of_a_margin_is_finite_everywhere() {
        for (margin, loss) in [(0.0, 2f64.ln()), (800.0, 0.0), (-800.0, 800.0)] {
            assert!((softplus(-margin) - loss).abs() < 1e-12, "{margin}");
        }
        assert!((sigmoid(3.0) + sigmoid(-3.0) - 1.0).abs() < 1e-12);
        assert_eq!((sigmoid(-1e4), sigmoid(1e4)), (0.0, 1.0));
    }
}
