//! One optimisation step: shards in parallel, gradients summed, clipped and applied.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use candle::backprop::GradStore;
use candle::{Device, Tensor, Var};

use super::adamw::{AdamW, floats};
use super::schedule::Schedule;
use super::tape::Tape;
use crate::Error;

/// What a shard's forward pass gives.
pub struct Loss {
    /// A scalar with its graph, whose gradient is that of the summed losses.
    pub sum: Tensor,
    /// The sum of weighted losses.
    pub value: f64,
    /// The sum of the weights.
    pub weight: f64,
    /// How many of the counted targets were the model's first choice, and how many there were; of
    /// preferences, how many were in order.
    pub hits: (f64, f64),
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
    pub fn new(sum: Tensor, weight: f64, hits: (f64, f64), tokens: u64) -> Result<Self, Error> {
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
    hits: (f64, f64),
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
            hits: (0.0, 0.0),
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
        let accuracy = (total.hits.1 > 0.0).then(|| total.hits.0 / total.hits.1);
        Ok(StepReport {
            loss,
            accuracy,
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
        self.hits = (self.hits.0 + other.hits.0, self.hits.1 + other.hits.1);
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

/// Runs a device's work on every item, results in the items' order: as [`in_parallel`] on the CPU, and elsewhere one
/// after the other, so that the device holds the values of one item alone.
pub fn on_device<S: Sync, T: Send>(
    device: &Device,
    items: &[S],
    work: impl Fn(&S) -> Result<T, Error> + Sync,
) -> Vec<Result<T, Error>> {
    if device.is_cpu() {
        in_parallel(items, work)
    } else {
        items.iter().map(work).collect()
    }
}

/// Runs work on every item, as many at once as there are processors, results in the items' order.
///
/// Each worker has a pool of one thread: the items are the parallelism, and a kernel that spread
/// itself over the processors as well would only make them wait for each other.
pub fn in_parallel<S: Sync, T: Send>(
    items: &[S],
    work: impl Fn(&S) -> Result<T, Error> + Sync,
) -> Vec<Result<T, Error>> {
    let mut results = Vec::with_capacity(items.len());
    let ended = in_order(items, work, |result| {
        results.push(result);
        Ok(())
    });
    results.extend(ended.err().map(Err));
    results
}

/// The same, each result being taken as soon as all before it are: of results that are only added up, those of a few
/// items are in memory at a time. What `take` refuses ends the work.
fn in_order<S: Sync, T: Send>(
    items: &[S],
    work: impl Fn(&S) -> Result<T, Error> + Sync,
    mut take: impl FnMut(Result<T, Error>) -> Result<(), Error>,
) -> Result<(), Error> {
    let workers = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(items.len());
    let next = AtomicUsize::new(0);
    let (done, results) = mpsc::channel();
    let run = |done: mpsc::Sender<(usize, Result<T, Error>)>| {
        while let Some((i, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, items.get(i)?)))
        {
            if done.send((i, work(item))).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        let spawn = |_| {
            let done = done.clone();
            let run = &run;
            scope.spawn(move || single_threaded(|| run(done)))
        };
        let handles: Vec<_> = (0..workers).map(spawn).collect();
        drop(done);
        let ended = taken(results, items.len(), &mut take);
        // A worker that has panicked has sent nothing, which is an error already.
        for handle in handles {
            drop(handle.join());
        }
        ended
    })
}

/// Takes results in the order of their numbers, of which there are so many.
fn taken<T>(
    results: mpsc::Receiver<(usize, Result<T, Error>)>,
    n: usize,
    take: &mut impl FnMut(Result<T, Error>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut early, mut next) = (BTreeMap::new(), 0);
    for (i, result) in results {
        early.insert(i, result);
        while let Some(result) = early.remove(&next) {
            take(result)?;
            next += 1;
        }
    }
    if next < n {
        return Err(Error::Training("a worker stopped".to_owned()));
    }
    Ok(())
}

fn single_threaded<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}
