//! The loss of a shard and its statistics.

use std::ops::AddAssign;

use candle::Tensor;
use candle::backprop::GradStore;

use super::tape::Tape;
use crate::Error;

/// A count of correct predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hits {
    /// Correct predictions.
    pub correct: f64,
    /// Counted predictions.
    pub total: f64,
}

impl Hits {
    /// The share of correct predictions; `None` if none was counted.
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

/// What a shard's forward pass gives.
pub struct Loss {
    /// A scalar with its graph, whose gradient is that of the summed losses.
    pub sum: Tensor,
    /// The sum of weighted losses.
    pub value: f64,
    /// The sum of the weights.
    pub weight: f64,
    /// Correct predictions: of counted targets, those that were the model's first choice; of preferences, those
    /// that the model ranks as labelled.
    pub hits: Hits,
    /// The sums of the rewards of preferred and of rejected continuations, of preferences alone.
    pub rewards: [f64; 2],
    /// Tokens computed, for the throughput.
    pub tokens: u64,
    /// Layers that `sum`'s graph does not reach.
    pub tape: Option<Tape>,
}

impl Loss {
    /// Its numbers without the graph, which holds all that was computed.
    #[must_use]
    pub fn measured(self) -> Self {
        Self {
            sum: self.sum.detach(),
            tape: None,
            ..self
        }
    }

    /// The loss whose value is that of `sum`.
    pub fn new(sum: Tensor, weight: f64, hits: Hits, tokens: u64) -> Result<Self, Error> {
        Ok(Self {
            value: f64::from(sum.to_scalar::<f32>()?),
            sum,
            weight,
            hits,
            rewards: [0.0; 2],
            tokens,
            tape: None,
        })
    }

    /// The gradients of all that it was computed from.
    pub fn backward(&self) -> Result<GradStore, Error> {
        let mut gradients = self.sum.backward()?;
        if let Some(tape) = &self.tape {
            tape.backward(&mut gradients)?;
        }
        Ok(gradients)
    }
}
