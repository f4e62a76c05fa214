//! One optimisation step: shards in parallel, gradients summed, clipped and applied.

use candle::Var;

use super::adamw::{AdamW, floats};
use super::loss::{Hits, Loss};
use super::parallel::in_order;
use super::schedule::Schedule;
use crate::Error;

/// What one step did.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepReport {
    /// Mean loss.
    pub loss: f64,
    /// Share of counted targets that were the first choice, or of preferences in order; absent where none counts.
    pub accuracy: Option<f64>,
    /// Mean rewards of preferred and of rejected continuations; their difference is the margin.
    pub rewards: [f64; 2],
    /// Norm of the gradient before clipping.
    pub norm: f64,
    /// Learning rate.
    pub rate: f64,
    /// Tokens computed.
    pub tokens: u64,
}

/// Runs steps.
pub struct Trainer {
    /// The optimizer with its state.
    pub optimizer: AdamW,
    schedule: Schedule,
    clip: f64,
}

struct Shard {
    loss: f64,
    weight: f64,
    hits: Hits,
    rewards: [f64; 2],
    tokens: u64,
    gradients: Vec<Vec<f32>>,
}

impl Trainer {
    /// A trainer whose gradients are clipped to a norm.
    pub fn new(optimizer: AdamW, schedule: Schedule, clip: f64) -> Self {
        Self {
            optimizer,
            schedule,
            clip,
        }
    }

    /// Steps done.
    pub fn steps(&self) -> u64 {
        self.optimizer.step
    }

    /// One step over shards, which the processors share out among them; another device computes one after the other.
    /// The result depends on how the batch is cut into shards, not on the number of processors. Gradients of shards
    /// are added up in f32.
    ///
    /// A trainable parameter that no shard gave a gradient, and a loss that is not finite, are
    /// errors; nothing is changed then.
    pub fn step<S: Sync>(
        &mut self,
        shards: &[S],
        loss: impl Fn(&S) -> Result<Loss, Error> + Sync,
    ) -> Result<StepReport, Error> {
        let parameters = self.optimizer.parameters();
        let mut total = Shard {
            loss: 0.0,
            weight: 0.0,
            hits: Hits::default(),
            rewards: [0.0; 2],
            tokens: 0,
            gradients: vec![Vec::new(); parameters.len()],
        };
        let gradients = |shard: &S| gradients(&loss, shard, parameters);
        let on_a_device = parameters.iter().any(|(_, var)| !var.device().is_cpu());
        if on_a_device {
            for shard in shards {
                total.add(gradients(shard)?);
            }
        } else {
            in_order(shards, gradients, |shard| {
                total.add(shard?);
                Ok(())
            })?;
        }
        self.apply(&total)
    }

    fn apply(&mut self, total: &Shard) -> Result<StepReport, Error> {
        let weight = total.weight.max(1e-9);
        for ((name, _), gradient) in self.optimizer.parameters().iter().zip(&total.gradients) {
            if gradient.is_empty() {
                return Err(Error::Training(format!(
                    "`{name}` is trainable but got no gradient"
                )));
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
                "loss {loss}, gradient norm {norm} at step {}\nhint: a lower `rate` may help",
                self.steps()
            )));
        }
        let rate = self.schedule.rate(self.steps());
        let clip = if norm > self.clip {
            self.clip / norm
        } else {
            1.0
        };
        self.optimizer
            .update(&total.gradients, (clip / weight) as f32, rate)?;
        Ok(StepReport {
            loss,
            accuracy: total.hits.accuracy(),
            rewards: total.rewards.map(|reward| reward / weight),
            norm,
            rate,
            tokens: total.tokens,
        })
    }
}

impl Shard {
    fn add(&mut self, other: Self) {
        self.loss += other.loss;
        self.weight += other.weight;
        self.hits += other.hits;
        self.rewards = [0, 1].map(|side| self.rewards[side] + other.rewards[side]);
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

fn gradients<S>(
    loss: impl Fn(&S) -> Result<Loss, Error>,
    shard: &S,
    parameters: &[(String, Var)],
) -> Result<Shard, Error> {
    let loss = loss(shard)?;
    let store = loss.backward()?;
    let gradients = parameters
        .iter()
        .map(|(_, var)| match store.get(var) {
            Some(gradient) => floats(gradient),
            None => Ok(Vec::new()),
        })
        .collect::<candle::Result<_>>()?;
    Ok(Shard {
        loss: loss.value,
        weight: loss.weight,
        hits: loss.hits,
        rewards: loss.rewards,
        tokens: loss.tokens,
        gradients,
    })
}
