//! Speedup of a DPO epoch by caching frozen activations and reference log-likelihoods.
//!
//! `RAYON_NUM_THREADS=2 cargo bench --bench training` prints the times. Compare only times of one
//! run on one machine. All variants train a decoder of 12 layers on the same preference pairs in
//! the same batches: all layers, with the reference model computed in each epoch (the default of
//! other DPO trainers); all layers, with cached reference log-likelihoods; the upper 3 layers, with
//! cached outputs of the 9 frozen layers.

#![expect(missing_docs, reason = "criterion generates undocumented functions")]
#![expect(clippy::unwrap_used, reason = "a failed benchmark may panic")]

#[path = "peers/training/epoch.rs"]
mod epoch;

use criterion::{Criterion, criterion_group, criterion_main};

use crate::epoch::{
    FROZEN_LAYERS, FrozenCache, create_model, generate_sequences, preference_pairs, train_epoch,
};

/// Measures an epoch of all variants.
fn dpo_epoch(c: &mut Criterion) {
    let sequences = generate_sequences();
    let mut group = c.benchmark_group("DPO epoch");
    group.sample_size(10);
    let (model, mut trainer) = create_model(0).unwrap();
    let (reference, _) = create_model(0).unwrap();
    group.bench_function("all layers, reference computed", |b| {
        b.iter(|| {
            let pairs = preference_pairs(&reference, &sequences).unwrap();
            train_epoch(&model, &mut trainer, &pairs).unwrap();
        });
    });
    let pairs = preference_pairs(&reference, &sequences).unwrap();
    group.bench_function("all layers, reference cached", |b| {
        b.iter(|| train_epoch(&model, &mut trainer, &pairs).unwrap());
    });
    let (model, mut trainer) = create_model(FROZEN_LAYERS).unwrap();
    let cache = FrozenCache::new(&model, &sequences).unwrap();
    group.bench_function("9 of 12 layers frozen and cached", |b| {
        b.iter(|| train_epoch(&model, &mut trainer, &cache.read().unwrap()).unwrap());
    });
    group.finish();
}

criterion_group!(benches, dpo_epoch);
criterion_main!(benches);
