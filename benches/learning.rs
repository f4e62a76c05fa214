//! How fast a model of 12 layers learns, and in how much memory: tokens per second of a step, and the peak.
//!
//! ```text
//! cargo bench --bench learning                             f32 on the CPU, all layers trained
//! cargo bench --bench learning -- cpu bf16 9               matrices in bf16, the 9 lower layers frozen
//! cargo bench --bench learning -- cuda bf16 9 recompute    on a GPU, layers being computed a second time
//! ```
//!
//! The weights are random, the steps those of a supervised stage. Every form is a process of its own, for the peak is
//! that of the process; on a GPU it is the main memory, of which the optimizer takes its part.

#![expect(clippy::print_stdout, reason = "figures are said")]

use std::path::Path;
use std::time::Instant;

use acem3::support::device::DeviceChoice;
use acem3::support::device::open;
use acem3::training::encoders::peak_memory::peak;
use acem3::training::{Precision, TrainConfig};
use acem3_experts::ModelConfig;
use acem3_experts::prompt::Slot;
use acem3_experts::train::{
    AdamW, AdamWConfig, Batch, Parameters, Schedule, Sequence, Student, Trainer,
};
use anyhow::{Context, Result, bail};

const LAYERS: usize = 12;
const HIDDEN: usize = 512;
const INNER: usize = 1408;
const VOCABULARY: u32 = 4096;
/// Tokens of a sequence, sequences of a step, and those computed at once.
const TOKENS: u32 = 128;
const BATCH: u32 = 4;
const AT_ONCE: usize = 2;
/// Steps that are timed, after one that is not.
const STEPS: u32 = 3;

fn model() -> Result<ModelConfig> {
    let recipe = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini/train.toml");
    let mut model = TrainConfig::read(&recipe)?.model;
    let decoder = &mut model.decoder;
    (decoder.num_hidden_layers, decoder.vocab_size) = (LAYERS, VOCABULARY as usize);
    (decoder.hidden_size, decoder.intermediate_size) = (HIDDEN, INNER);
    (decoder.num_attention_heads, decoder.num_key_value_heads) = (8, Some(8));
    model.projector.hidden_size = HIDDEN;
    Ok(model)
}

/// Sequences of random words.
fn sequences() -> Vec<Sequence> {
    let word = |i: u32| i.wrapping_mul(2_654_435_761) % VOCABULARY;
    let of = |n: u32| {
        let mut sequence = Sequence::new(&[Slot::Token(word(n))], None, 0);
        sequence.branch((1..TOKENS).map(|i| (word(n * 31 + i * 7), 1.0)));
        sequence
    };
    (0..BATCH).map(of).collect()
}

/// What stays as it is.
fn frozen(layers: usize) -> Vec<String> {
    let below = ["model.vision_tower.", "model.mm_projector."];
    let words = (layers > 0).then_some("model.embed_tokens.");
    let names = below.into_iter().chain(words).map(str::to_owned);
    names
        .chain((0..layers).map(|i| format!("model.layers.{i}.")))
        .collect()
}

fn main() -> Result<()> {
    let given: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    let word = |i: usize, default| given.get(i).copied().unwrap_or(default);
    let device: DeviceChoice = word(0, "cpu").parse().map_err(anyhow::Error::msg)?;
    let precision = match word(1, "f32") {
        "f32" => Precision::F32,
        "bf16" => Precision::Bf16,
        other => bail!("`{other}` is no type\nhint: f32 and bf16 are"),
    };
    let layers: usize = word(2, "0").parse().context("frozen layers are a number")?;
    let recompute = given.contains(&"recompute");
    let device = open(device)?;
    let start = Parameters::fresh(1);
    let parameters = start.placed(&device, precision.dtype())?;
    let parameters = parameters.freeze(&frozen(layers));
    let student = Student::load(&parameters.builder(), &model()?, 0)?.recomputing(recompute);
    let optimizer = AdamW::new(parameters.trainable(), AdamWConfig::default());
    let optimizer = optimizer.with_masters(|name, var| start.exact(name, var.shape()))?;
    let schedule = Schedule {
        peak: 1e-5,
        warmup: 1,
        steps: 1000,
        floor: 1.0,
    };
    let mut trainer = Trainer::new(optimizer, schedule, 1.0);
    let sequences = sequences();
    let shards: Vec<&[Sequence]> = sequences.chunks(AT_ONCE).collect();
    let mut step = || trainer.step(&shards, |shard| student.loss(&Batch(shard), |_| true));
    let first = step()?;
    let begun = Instant::now();
    for _ in 0..STEPS {
        step()?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let speed = f64::from(STEPS) * first.tokens as f64 / seconds;
    let memory = peak().map_or_else(String::new, |p| format!(", {:.2} GB", p as f64 / 1e9));
    println!(
        "{}, {layers} of {LAYERS} layers frozen, recompute {recompute}: {speed:.0} tokens/s{memory}, first loss {:.4}",
        precision.dtype().as_str(),
        first.loss
    );
    Ok(())
}
