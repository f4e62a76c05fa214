//! What a frozen trunk that is computed once is worth in learning from preferences: an epoch over the same
//! preferences in the same batches, side by side.
//!
//! `RAYON_NUM_THREADS=2 cargo bench --bench training` prints the times; only their ratio on one machine,
//! in one run, says anything. A decoder of 12 layers learns to prefer: with all of its layers, its reference
//! computed in every epoch as preference trainers do unless told otherwise; the same with the reference's
//! log-likelihoods kept; and with 9 layers frozen and computed before.

#![expect(missing_docs, reason = "criterion writes functions without any")]
#![expect(clippy::unwrap_used, reason = "a bench that fails ends")]

use std::path::Path;

use acem3::training::TrainConfig;
use acem3_experts::ModelConfig;
use acem3_experts::prompt::Slot;
use acem3_experts::train::{
    AdamW, AdamWConfig, Batch, Given, Parameters, Preference, PreferenceLoss, Schedule, Sequence,
    Student, Trainer,
};
use candle::{DType, Tensor};
use criterion::{Criterion, criterion_group, criterion_main};

const LAYERS: usize = 12;
const FROZEN: usize = 9;
const VOCABULARY: u32 = 4096;
/// Tokens of a case, and of each of the two evaluations.
const PROMPT: u32 = 160;
const TEXT: u32 = 160;
/// Preferences of an epoch, of a step, and computed at once.
const PREFERENCES: u32 = 16;
const BATCH: usize = 8;
const AT_ONCE: usize = 4;
const LOSS: PreferenceLoss = PreferenceLoss {
    beta: 0.1,
    anchor: 0.0,
};

fn config() -> ModelConfig {
    let recipe = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini/train.toml");
    let mut model = TrainConfig::read(&recipe).unwrap().model;
    model.decoder.num_hidden_layers = LAYERS;
    model.decoder.vocab_size = VOCABULARY as usize;
    model
}

/// Preferences in random words; of every evaluation a third is written, the rest is its form.
fn sequences() -> Vec<Sequence> {
    let word = |i: u32| i.wrapping_mul(2_654_435_761) % VOCABULARY;
    let of = |n: u32| {
        let prompt: Vec<Slot> = (0..PROMPT).map(|i| Slot::Token(word(n + i))).collect();
        let mut sequence = Sequence::new(&prompt, None, 0);
        for side in 0..2 {
            let cost = |i: u32| f32::from(u8::from(i.is_multiple_of(3)));
            sequence.branch((0..TEXT).map(|i| (word(n * 31 + i * 7 + side), cost(i))));
        }
        sequence
    };
    (0..PREFERENCES).map(of).collect()
}

/// A model with its lower layers frozen, and its optimizer.
fn model(frozen: usize) -> (Student, Trainer) {
    let mut below: Vec<String> = vec![
        "model.vision_tower.".to_owned(),
        "model.mm_projector.".to_owned(),
    ];
    if frozen > 0 {
        below.push("model.embed_tokens.".to_owned());
    }
    below.extend((0..frozen).map(|i| format!("model.layers.{i}.")));
    let parameters = Parameters::fresh(1).freeze(&below);
    let student = Student::load(&parameters.builder(), &config(), frozen).unwrap();
    let schedule = Schedule {
        peak: 1e-5,
        warmup: 1,
        steps: 1000,
        floor: 1.0,
    };
    let optimizer = AdamW::new(parameters.trainable(), AdamWConfig::default());
    (student, Trainer::new(optimizer, schedule, 1.0))
}

/// Preferences with what the model thinks of them now.
fn preferences(student: &Student, sequences: &[Sequence]) -> Vec<Preference> {
    let pairs = sequences.chunks(AT_ONCE).flat_map(|sequences| {
        let likely = student.log_likelihoods(&Batch(sequences)).unwrap();
        sequences.iter().cloned().zip(likely)
    });
    pairs
        .map(|(sequence, reference)| Preference {
            sequence,
            reference,
        })
        .collect()
}

fn epoch(student: &Student, trainer: &mut Trainer, preferences: &[Preference]) {
    for batch in preferences.chunks(BATCH) {
        let shards: Vec<_> = batch.chunks(AT_ONCE).collect();
        let step = trainer.step(&shards, |shard| student.preference_loss(shard, LOSS));
        assert!(step.unwrap().loss.is_finite());
    }
}

fn trunk(c: &mut Criterion) {
    let sequences = sequences();
    let mut group = c.benchmark_group("an epoch of preferences");
    group.sample_size(10);
    let (student, mut trainer) = model(0);
    let (reference, _) = model(0);
    group.bench_function("all layers, reference computed", |b| {
        b.iter(|| epoch(&student, &mut trainer, &preferences(&reference, &sequences)));
    });
    let known = preferences(&reference, &sequences);
    group.bench_function("all layers, reference kept", |b| {
        b.iter(|| epoch(&student, &mut trainer, &known));
    });
    let (student, mut trainer) = model(FROZEN);
    let kept = sequences.chunks(AT_ONCE).flat_map(|batch| {
        let tops = student.trunk_top(&Batch(batch)).unwrap();
        tops.into_iter()
            .map(|top| top.to_dtype(DType::F16).unwrap())
    });
    let kept: Vec<Tensor> = kept.collect();
    let read = || -> Vec<Sequence> {
        let both = sequences.iter().zip(&kept);
        both.map(|(sequence, top)| {
            let mut sequence = sequence.clone();
            sequence.given = Given::Hidden(top.to_dtype(DType::F32).unwrap());
            sequence
        })
        .collect()
    };
    let known = preferences(&student, &read());
    group.bench_function("9 of 12 layers frozen and kept", |b| {
        b.iter(|| {
            let again = read().into_iter().zip(&known);
            let again = again.map(|(sequence, known)| Preference {
                sequence,
                ..known.clone()
            });
            epoch(&student, &mut trainer, &again.collect::<Vec<_>>());
        });
    });
    group.finish();
}

criterion_group!(benches, trunk);
criterion_main!(benches);
