//! Seconds of a DPO epoch of this program and of a plain loop in PyTorch: the same sizes, batches
//! and optimizer, random weights.
//!
//! ```text
//! cargo bench --bench peers -- FOLDER training         one thread, five rounds
//! cargo bench --bench peers -- FOLDER training 2 3     two threads, three rounds
//! ```
//!
//! Three variants train the same pairs: all layers, with the reference model computed in each epoch
//! (the default of other trainers); all layers, with log-likelihoods of the reference model from the
//! first epoch; the upper 3 of 12 layers. In the third, this program also reads the outputs of the
//! frozen layers of the first epoch. PyTorch computes them again, as other trainers do.

mod epoch;

use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::time::Instant;

use acem3::support::device::environment::{self, Workload};
use acem3_experts::train::{PreferenceExample, Sequence, TrainableModel, Trainer};
use anyhow::{Result, bail};
use serde_json::json;

use self::epoch::{
    FROZEN_LAYERS, FrozenCache, create_model, generate_sequences, preference_pairs, train_epoch,
};
use crate::peer::{Peer, own_worker, python};
use crate::{describe_ratios, median};

/// Jobs, and their titles.
const JOBS: [(&str, &str); 3] = [
    ("computed", "all layers, reference computed"),
    ("cached", "all layers, reference cached"),
    ("frozen", "9 of 12 layers frozen"),
];

/// Measures both engines, one after the other in every round.
pub(crate) fn run(environment: &Path, args: &[String]) -> Result<()> {
    let number = |i: usize, default: usize| args.get(i).map_or(Ok(default), |arg| arg.parse());
    let (threads, rounds) = (number(0, 1)?, number(1, 5)?);
    let mut own = own_worker(threads)?;
    own.args(["training-worker", "-", "f32"]);
    let sizes = json!({"decoder": epoch::model_config()?.decoder, "frozen_layers": FROZEN_LAYERS,
        "prompt": epoch::PROMPT_TOKENS, "completion": epoch::COMPLETION_TOKENS,
        "pairs": epoch::EPOCH_SIZE, "batch": epoch::BATCH_SIZE, "shard": epoch::SHARD_SIZE});
    let mut other = python(environment, "training_worker.py");
    other.args([sizes.to_string(), threads.to_string()]);
    other.env("OMP_NUM_THREADS", threads.to_string());
    let mut peers = [Peer::start("acem3", "f32", own)?, Peer::start("PyTorch", "f32", other)?];
    let mut seconds = vec![vec![Vec::new(); JOBS.len()]; peers.len()];
    for round in 0..=rounds {
        for (i, (job, _)) in JOBS.iter().enumerate() {
            for (peer, seconds) in peers.iter_mut().zip(&mut seconds) {
                let measured = peer.run(job)?;
                // The first epoch fills the caches and reserves memory.
                if round > 0 {
                    seconds[i].push(measured);
                }
            }
        }
    }
    println!("{threads} threads, {rounds} rounds, seconds per epoch\n");
    println!(
        "| variant | acem3 | PyTorch | PyTorch / acem3 | PyTorch, reference computed / acem3 |"
    );
    println!("|---|---|---|---|---|");
    for (i, (_, title)) in JOBS.iter().enumerate() {
        let [own, other] = [0, 1].map(|peer| median(seconds[peer][i].clone()));
        let same = describe_ratios(&seconds[0][i], &seconds[1][i]);
        let default = describe_ratios(&seconds[0][i], &seconds[1][0]);
        println!("| {title} | {own:.3} | {other:.3} | {same} | {default} |");
    }
    Ok(())
}

/// Models of this program with their caches.
struct Variants {
    sequences: Vec<Sequence>,
    reference: TrainableModel,
    full: (TrainableModel, Trainer),
    pairs: Vec<PreferenceExample>,
    frozen: (TrainableModel, Trainer),
    cache: FrozenCache,
}

impl Variants {
    fn new() -> Result<Self> {
        let sequences = generate_sequences();
        let (reference, _) = create_model(0)?;
        let frozen = create_model(FROZEN_LAYERS)?;
        Ok(Self {
            pairs: preference_pairs(&reference, &sequences)?,
            cache: FrozenCache::new(&frozen.0, &sequences)?,
            full: create_model(0)?,
            sequences,
            reference,
            frozen,
        })
    }

    /// Trains one epoch.
    fn train(&mut self, job: &str) -> Result<()> {
        let (full, full_trainer) = (&self.full.0, &mut self.full.1);
        match job {
            "computed" => {
                let pairs = preference_pairs(&self.reference, &self.sequences)?;
                train_epoch(full, full_trainer, &pairs)
            }
            "cached" => train_epoch(full, full_trainer, &self.pairs),
            "frozen" => train_epoch(&self.frozen.0, &mut self.frozen.1, &self.cache.read()?),
            _ => bail!("unknown job `{job}`"),
        }
    }
}

/// Runs jobs from standard input until it ends. Writes seconds to standard output.
pub(crate) fn work() -> Result<()> {
    environment::set_variables(Workload::Training);
    let mut variants = Variants::new()?;
    let mut output = std::io::stdout().lock();
    writeln!(output, "ready")?;
    output.flush()?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let start = Instant::now();
        variants.train(line.trim())?;
        writeln!(output, "{}", start.elapsed().as_secs_f64())?;
        output.flush()?;
    }
    Ok(())
}
