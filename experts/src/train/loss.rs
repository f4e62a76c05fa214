//! Loss of a shard, with its statistics. A shard is a part of a batch that runs in one forward
//! pass.

use std::ops::AddAssign;

use candle::Tensor;
use candle::backprop::GradStore;

use super::recompute::RecomputeTape;
use crate::Error;

/// Numbers of correct and of all counted predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hits {
    /// Correct predictions.
    pub correct: f64,
    /// All counted predictions.
    pub total: f64,
}

impl Hits {
    /// Returns the proportion of correct predictions, or `None` if none was counted.
    pub fn accuracy(self) -> Option<f64> {
        (self.total > 0.0).then(|| self.correct / self.total)
    }
}

impl AddAssign for Hits {
    fn add_assign(&mut self, other: Self) {
        self.correct += other.correct;
        self.total += other.total;
    }
}

/// Result of the forward pass of a shard.
pub struct ShardLoss {
    /// Scalar with its graph. Its gradient is the gradient of `loss_sum`, but its value may differ.
    pub surrogate: Tensor,
    /// Sum of the weighted losses.
    pub loss_sum: f64,
    /// Sum of the weights.
    pub weight_sum: f64,
    /// Correct predictions: counted targets that are the most probable token, or preference pairs
    /// in which the chosen completion has the higher reward.
    pub hits: Hits,
    /// Sums of the rewards of the chosen and of the rejected completions. Zero unless the examples
    /// are preference pairs.
    pub rewards: [f64; 2],
    /// Number of processed tokens, for the throughput.
    pub tokens: u64,
    /// Recomputed layers, which are not part of the graph of `surrogate`.
    pub tape: Option<RecomputeTape>,
}

impl ShardLoss {
    /// Drops the graph, which keeps all activations in memory.
    #[must_use]
    pub fn detach(self) -> Self {
        Self { surrogate: self.surrogate.detach(), tape: None, ..self }
    }

    /// Creates the result of a forward pass whose surrogate is the summed loss itself.
    pub fn new(loss_sum: Tensor, weight_sum: f64, hits: Hits, tokens: u64) -> Result<Self, Error> {
        Ok(Self {
            loss_sum: f64::from(loss_sum.to_scalar::<f32>()?),
            surrogate: loss_sum,
            weight_sum,
            hits,
            rewards: [0.0; 2],
            tokens,
            tape: None,
        })
    }

    /// Computes the gradients of all variables, including those of recomputed layers.
    pub fn backward(&self) -> Result<GradStore, Error> {
        let mut gradients = self.surrogate.backward()?;
        if let Some(tape) = &self.tape {
            tape.backward(&mut gradients)?;
        }
        Ok(gradients)
    }
}
