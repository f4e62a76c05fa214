//! Training throughput and peak memory of a model of 12 layers.
//!
//! ```text
//! cargo bench --bench learning                            f32 on the CPU, all layers trained
//! cargo bench --bench learning -- cpu bf16 9              bf16 matrices, the 9 lower layers frozen
//! cargo bench --bench learning -- cuda bf16 9 recompute   on a GPU, with activation recomputation
//! ```
//!
//! The weights are random. The steps are those of a supervised stage. Each run measures one
//! variant, because the peak memory is that of the process. On a GPU it is the peak of main memory,
//! which holds the optimizer state.

#![expect(clippy::print_stdout, reason = "the measurements are the output")]

use std::path::Path;
use std::time::Instant;

use acem3::support::device::DeviceChoice;
use acem3::support::device::open_device;
use acem3::training::comparisons::encoders::peak_memory::peak;
use acem3::training::{Precision, TrainConfig};
use acem3_experts::ModelConfig;
use acem3_experts::prompt::PromptToken;
use acem3_experts::train::{
    Batch, Optimizer, OptimizerConfig, Parameters, Schedule, Sequence, TrainableModel, Trainer,
};
use anyhow::{Context, Result, bail};

const LAYERS: usize = 12;
const HIDDEN: usize = 512;
const INTERMEDIATE: usize = 1408;
const VOCABULARY: u32 = 4096;
/// Tokens per sequence.
const SEQUENCE_TOKENS: u32 = 128;
/// Sequences per step.
const BATCH_SIZE: u32 = 4;
/// Sequences per shard.
const SHARD_SIZE: usize = 2;
/// Timed steps, after one warmup step.
const TIMED_STEPS: u32 = 3;

/// Returns the configuration of the model.
fn model_config() -> Result<ModelConfig> {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini/train.toml");
    let mut model = TrainConfig::read(&config)?.model;
    let decoder = &mut model.decoder;
    (decoder.num_hidden_layers, decoder.vocab_size) = (LAYERS, VOCABULARY as usize);
    (decoder.hidden_size, decoder.intermediate_size) = (HIDDEN, INTERMEDIATE);
    (decoder.num_attention_heads, decoder.num_key_value_heads) = (8, Some(8));
    model.projector.hidden_size = HIDDEN;
    Ok(model)
}

/// Generates sequences of pseudo-random tokens.
fn generate_sequences() -> Vec<Sequence> {
    let token = |i: u32| i.wrapping_mul(2_654_435_761) % VOCABULARY;
    let sequence = |n: u32| {
        let mut sequence = Sequence::new(&[PromptToken::Token(token(n))], None);
        sequence.push_branch((1..SEQUENCE_TOKENS).map(|i| (token(n * 31 + i * 7), 1.0)));
        sequence
    };
    (0..BATCH_SIZE).map(sequence).collect()
}

/// Returns the name prefixes of the frozen weights.
fn frozen_prefixes(frozen_layers: usize) -> Vec<String> {
    let vision = ["model.vision_tower.", "model.mm_projector."];
    let embedding = (frozen_layers > 0).then_some("model.embed_tokens.");
    let prefixes = vision.into_iter().chain(embedding).map(str::to_owned);
    prefixes.chain((0..frozen_layers).map(|i| format!("model.layers.{i}."))).collect()
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let arg = |i: usize, default| args.get(i).copied().unwrap_or(default);
    let device: DeviceChoice = arg(0, "cpu").parse().map_err(anyhow::Error::msg)?;
    let precision = match arg(1, "f32") {
        "f32" => Precision::F32,
        "bf16" => Precision::Bf16,
        other => bail!("unknown precision `{other}`\nhint: pass f32 or bf16"),
    };
    let frozen_layers: usize =
        arg(2, "0").parse().context("the number of frozen layers is not an integer")?;
    let recompute = args.contains(&"recompute");
    let device = open_device(&device)?;
    let start = Parameters::uninitialized(1);
    let parameters = start.to_device(&device, precision.dtype())?;
    let parameters = parameters.freeze(&frozen_prefixes(frozen_layers));
    let model = TrainableModel::load(&parameters.builder(), &model_config()?, 0)?
        .with_recomputation(recompute);
    let optimizer = Optimizer::new(parameters.trainable(), OptimizerConfig::default());
    let optimizer =
        optimizer.with_master_weights(|name, var| start.master_value(name, var.shape()))?;
    let schedule = Schedule { peak: 1e-5, warmup: 1, steps: 1000, floor: 1.0 };
    let mut trainer = Trainer::new(optimizer, schedule, 1.0);
    let sequences = generate_sequences();
    let shards: Vec<&[Sequence]> = sequences.chunks(SHARD_SIZE).collect();
    let mut step = || trainer.step(&shards, |shard| model.loss(&Batch(shard), |_| true));
    let first = step()?;
    let start_time = Instant::now();
    for _ in 0..TIMED_STEPS {
        step()?;
    }
    let seconds = start_time.elapsed().as_secs_f64();
    let throughput = f64::from(TIMED_STEPS) * first.tokens as f64 / seconds;
    let memory = peak().map_or_else(String::new, |p| format!(", {:.2} GB", p as f64 / 1e9));
    println!(
        "{}, {frozen_layers} of {LAYERS} layers frozen, recompute {recompute}: \
         {throughput:.0} tokens/s{memory}, first loss {:.4}",
        precision.dtype().as_str(),
        first.loss
    );
    Ok(())
}
