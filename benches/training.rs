//! Speedup of a DPO epoch by caching frozen activations and reference log-likelihoods.
//!
//! `RAYON_NUM_THREADS=2 cargo bench --bench training` prints the times. Compare only times of one
//! run on one machine. All variants train a decoder of 12 layers on the same preference pairs in
//! the same batches: all layers, with the reference model computed in each epoch (the default of
//! other DPO trainers); all layers, with cached reference log-likelihoods; the upper 3 layers, with
//! cached outputs of the 9 frozen layers.

#![expect(missing_docs, reason = "criterion generates undocumented functions")]
#![expect(clippy::unwrap_used, reason = "a failed benchmark may panic")]

use std::path::Path;

use acem3::training::TrainConfig;
use acem3_experts::ModelConfig;
use acem3_experts::prompt::PromptToken;
use acem3_experts::train::{
    AdamW, AdamWConfig, Batch, DpoLossConfig, Parameters, PreferenceExample, Schedule, Sequence,
    SequenceInput, TrainableModel, Trainer,
};
use candle::{DType, Tensor};
use criterion::{Criterion, criterion_group, criterion_main};

const LAYERS: usize = 12;
const FROZEN_LAYERS: usize = 9;
const VOCABULARY: u32 = 4096;
/// Tokens of the prompt.
const PROMPT_TOKENS: u32 = 160;
/// Tokens of each of the two completions.
const COMPLETION_TOKENS: u32 = 160;
/// Preference pairs per epoch.
const EPOCH_SIZE: u32 = 16;
/// Preference pairs per step.
const BATCH_SIZE: usize = 8;
/// Preference pairs per shard: the part of a batch that one forward pass processes.
const SHARD_SIZE: usize = 4;
const LOSS_CONFIG: DpoLossConfig = DpoLossConfig { beta: 0.1, nll_weight: 0.0 };

/// Returns the configuration of the model.
fn model_config() -> ModelConfig {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini/train.toml");
    let mut model = TrainConfig::read(&config).unwrap().model;
    model.decoder.num_hidden_layers = LAYERS;
    model.decoder.vocab_size = VOCABULARY as usize;
    model
}

/// Generates sequences of a prompt and two completions from pseudo-random tokens. A third of the
/// tokens of each completion are targets.
fn generate_sequences() -> Vec<Sequence> {
    let token = |i: u32| i.wrapping_mul(2_654_435_761) % VOCABULARY;
    let sequence = |n: u32| {
        let prompt: Vec<PromptToken> =
            (0..PROMPT_TOKENS).map(|i| PromptToken::Token(token(n + i))).collect();
        let mut sequence = Sequence::new(&prompt, None, 0);
        for completion in 0..2 {
            let weight = |i: u32| f32::from(u8::from(i.is_multiple_of(3)));
            let tokens =
                (0..COMPLETION_TOKENS).map(|i| (token(n * 31 + i * 7 + completion), weight(i)));
            sequence.push_branch(tokens);
        }
        sequence
    };
    (0..EPOCH_SIZE).map(sequence).collect()
}

/// Creates a model and its trainer. The vision tower, the projector and the lower `frozen_layers`
/// layers of the decoder are frozen.
fn create_model(frozen_layers: usize) -> (TrainableModel, Trainer) {
    let mut frozen: Vec<String> =
        vec!["model.vision_tower.".to_owned(), "model.mm_projector.".to_owned()];
    if frozen_layers > 0 {
        frozen.push("model.embed_tokens.".to_owned());
    }
    frozen.extend((0..frozen_layers).map(|i| format!("model.layers.{i}.")));
    let parameters = Parameters::uninitialized(1).freeze(&frozen);
    let model =
        TrainableModel::load(&parameters.builder(), &model_config(), frozen_layers).unwrap();
    let schedule = Schedule { peak: 1e-5, warmup: 1, steps: 1000, floor: 1.0 };
    let optimizer = AdamW::new(parameters.trainable(), AdamWConfig::default());
    (model, Trainer::new(optimizer, schedule, 1.0))
}

/// Builds preference pairs from sequences, with `model` as the reference model.
fn preference_pairs(model: &TrainableModel, sequences: &[Sequence]) -> Vec<PreferenceExample> {
    let pairs = sequences.chunks(SHARD_SIZE).flat_map(|sequences| {
        let log_likelihoods = model.log_likelihoods(&Batch(sequences)).unwrap();
        sequences.iter().cloned().zip(log_likelihoods)
    });
    pairs
        .map(|(sequence, reference_log_likelihoods)| PreferenceExample {
            sequence,
            reference_log_likelihoods,
        })
        .collect()
}

/// Trains one epoch on preference pairs.
fn train_epoch(model: &TrainableModel, trainer: &mut Trainer, pairs: &[PreferenceExample]) {
    for batch in pairs.chunks(BATCH_SIZE) {
        let shards: Vec<_> = batch.chunks(SHARD_SIZE).collect();
        let step = trainer.step(&shards, |shard| model.preference_loss(shard, LOSS_CONFIG));
        assert!(step.unwrap().loss.is_finite());
    }
}

/// Measures an epoch of all variants.
fn dpo_epoch(c: &mut Criterion) {
    let sequences = generate_sequences();
    let mut group = c.benchmark_group("DPO epoch");
    group.sample_size(10);
    let (model, mut trainer) = create_model(0);
    let (reference, _) = create_model(0);
    group.bench_function("all layers, reference computed", |b| {
        b.iter(|| {
            train_epoch(&model, &mut trainer, &preference_pairs(&reference, &sequences));
        });
    });
    let pairs = preference_pairs(&reference, &sequences);
    group.bench_function("all layers, reference cached", |b| {
        b.iter(|| train_epoch(&model, &mut trainer, &pairs));
    });
    let (model, mut trainer) = create_model(FROZEN_LAYERS);
    let cache = sequences.chunks(SHARD_SIZE).flat_map(|batch| {
        let outputs = model.trunk_output(&Batch(batch)).unwrap();
        outputs.into_iter().map(|output| output.to_dtype(DType::F16).unwrap())
    });
    let cache: Vec<Tensor> = cache.collect();
    let read_cache = || -> Vec<Sequence> {
        let cached = sequences.iter().zip(&cache);
        let with_hidden = cached.map(|(sequence, output)| {
            let mut sequence = sequence.clone();
            sequence.input = SequenceInput::Hidden(output.to_dtype(DType::F32).unwrap());
            sequence
        });
        with_hidden.collect()
    };
    let pairs = preference_pairs(&model, &read_cache());
    group.bench_function("9 of 12 layers frozen and cached", |b| {
        b.iter(|| {
            let cached = read_cache().into_iter().zip(&pairs);
            let cached =
                cached.map(|(sequence, pair)| PreferenceExample { sequence, ..pair.clone() });
            train_epoch(&model, &mut trainer, &cached.collect::<Vec<_>>());
        });
    });
    group.finish();
}

criterion_group!(benches, dpo_epoch);
criterion_main!(benches);
