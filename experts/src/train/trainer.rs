//! Optimisation steps: compute the gradients of shards in parallel, sum, clip and apply them.

use candle::Var;

use super::loss::{Hits, ShardLoss};
use super::optimizer::{Optimizer, to_f32_vec};
use super::parallel::parallel_for_each_in_order;
use super::schedule::Schedule;
use crate::Error;

/// Result of one step.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepReport {
    /// Mean loss of the batch.
    pub loss: f64,
    /// Proportion of correct predictions (see [`ShardLoss::hits`]). `None` if none was counted.
    pub accuracy: Option<f64>,
    /// Mean rewards of the chosen and of the rejected completions. Their difference is the margin.
    pub rewards: [f64; 2],
    /// L2 norm of the gradient before clipping.
    pub gradient_norm: f64,
    /// Learning rate.
    pub learning_rate: f64,
    /// Number of processed tokens.
    pub tokens: u64,
}

/// Runs optimisation steps.
pub struct Trainer {
    /// Optimizer with its state.
    pub optimizer: Optimizer,
    schedule: Schedule,
    max_gradient_norm: f64,
}

/// Losses and gradients of one or more shards.
struct ShardResult {
    loss: f64,
    weight: f64,
    hits: Hits,
    rewards: [f64; 2],
    tokens: u64,
    gradients: Vec<Vec<f32>>,
}

impl Trainer {
    /// Creates a trainer that clips gradients to a norm.
    pub fn new(optimizer: Optimizer, schedule: Schedule, max_gradient_norm: f64) -> Self {
        Self { optimizer, schedule, max_gradient_norm }
    }

    /// Returns the number of completed steps.
    pub fn steps(&self) -> u64 {
        self.optimizer.step
    }

    /// Runs one step over the shards of a batch. Shards run in parallel on the CPU and one after
    /// the other on other devices. Their gradients are summed in f32. The result depends on the
    /// split into shards, but not on the number of processors.
    ///
    /// # Errors
    /// A trainable parameter without a gradient, or a loss that is not finite. Parameters and
    /// optimizer are then unchanged.
    pub fn step<S: Sync>(
        &mut self,
        shards: &[S],
        loss: impl Fn(&S) -> Result<ShardLoss, Error> + Sync,
    ) -> Result<StepReport, Error> {
        let parameters = self.optimizer.parameters();
        let mut total = ShardResult {
            loss: 0.0,
            weight: 0.0,
            hits: Hits::default(),
            rewards: [0.0; 2],
            tokens: 0,
            gradients: vec![Vec::new(); parameters.len()],
        };
        let gradients = |shard: &S| gradients(&loss, shard, parameters);
        let is_on_device = parameters.iter().any(|(_, var)| !var.device().is_cpu());
        if is_on_device {
            for shard in shards {
                total.add(gradients(shard)?);
            }
        } else {
            parallel_for_each_in_order(shards, gradients, |shard| {
                total.add(shard?);
                Ok(())
            })?;
        }
        self.apply(&total)
    }

    /// Clips the summed gradients and updates the parameters.
    fn apply(&mut self, total: &ShardResult) -> Result<StepReport, Error> {
        let weight = total.weight.max(1e-9);
        for ((name, _), gradient) in self.optimizer.parameters().iter().zip(&total.gradients) {
            if gradient.is_empty() {
                return Err(Error::Training(format!("`{name}` is trainable but has no gradient")));
            }
        }
        let squares: f64 = total
            .gradients
            .iter()
            .map(|g| g.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>())
            .sum();
        let norm = squares.sqrt() / weight;
        let loss = total.loss / weight;
        if !loss.is_finite() || !norm.is_finite() {
            return Err(Error::Training(format!(
                "step {}: loss {loss} and gradient norm {norm}, expected finite numbers\n\
                 hint: lower `rate`",
                self.steps()
            )));
        }
        let rate = self.schedule.rate(self.steps());
        let clip_factor =
            if norm > self.max_gradient_norm { self.max_gradient_norm / norm } else { 1.0 };
        self.optimizer.update(&total.gradients, (clip_factor / weight) as f32, rate)?;
        Ok(StepReport {
            loss,
            accuracy: total.hits.accuracy(),
            rewards: total.rewards.map(|reward| reward / weight),
            gradient_norm: norm,
            learning_rate: rate,
            tokens: total.tokens,
        })
    }
}

impl ShardResult {
    /// Adds the sums and gradients of another shard.
    fn add(&mut self, other: Self) {
        self.loss += other.loss;
        self.weight += other.weight;
        self.hits += other.hits;
        self.rewards = [0, 1].map(|i| self.rewards[i] + other.rewards[i]);
        self.tokens += other.tokens;
        for (sum, gradient) in self.gradients.iter_mut().zip(other.gradients) {
            if sum.is_empty() {
                *sum = gradient;
            } else {
                sum.iter_mut().zip(&gradient).for_each(|(sum, g)| *sum += g);
            }
        }
    }
}

/// Computes the loss of a shard and the gradients of `parameters`.
fn gradients<S>(
    loss: impl Fn(&S) -> Result<ShardLoss, Error>,
    shard: &S,
    parameters: &[(String, Var)],
) -> Result<ShardResult, Error> {
    let loss = loss(shard)?;
    let store = loss.backward()?;
    let gradients = parameters
        .iter()
        .map(|(_, var)| match store.get(var) {
            Some(gradient) => to_f32_vec(gradient),
            None => Ok(Vec::new()),
        })
        .collect::<candle::Result<_>>()?;
    Ok(ShardResult {
        loss: loss.loss_sum,
        weight: loss.weight_sum,
        hits: loss.hits,
        rewards: loss.rewards,
        tokens: loss.tokens,
        gradients,
    })
}
