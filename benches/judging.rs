//! Speedup of judging by batching and by prefix sharing, measured on the demo folder.
//!
//! `RAYON_NUM_THREADS=2 cargo bench --bench judging` prints the times. Compare only times of one
//! run on one machine. Without that variable the tensor library queries the number of processors at
//! every matrix product; `acem3` sets the variable itself. Tests check that all variants return the
//! same verdicts.

#![expect(missing_docs, reason = "criterion generates undocumented functions")]
#![expect(clippy::unwrap_used, reason = "a failed benchmark may panic")]

use std::path::Path;

use acem3::checkpoints::hub::HubDownloads;
use acem3::checkpoints::panel::files::PanelFiles;
use acem3::data::cases;
use acem3::data::cases::SourceOptions;
use acem3::data::images::ImageReader;
use acem3::judging::judge::{Judge as _, JudgeJob};
use acem3::judging::panel::{JudgeOptions, Panel, PanelJudge, PanelOptions};
use acem3::support::device::Placement;
use acem3_vision::ImageLimits;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

/// Loads every pair of the demo folder.
fn load_demo_pairs() -> anyhow::Result<Vec<JudgeJob>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo");
    let mut images = ImageReader::new(folder.clone(), ImageLimits::default());
    let mut jobs = Vec::new();
    for case in cases::open(&folder, &SourceOptions::default())?.flatten() {
        let image = case.image.as_ref().map(|source| images.load(source));
        jobs.push(JudgeJob {
            image: image.transpose().map_err(anyhow::Error::msg)?,
            case: case.into(),
            responses: vec![0, 1],
        });
    }
    Ok(jobs)
}

/// Loads the embedded panel with empty caches.
fn load_panel_judge(single_order: bool) -> anyhow::Result<PanelJudge> {
    let panel = Panel::load(
        &PanelFiles::Embedded,
        PanelOptions::default(),
        &Placement::cpu(),
        HubDownloads::default(),
    )?;
    PanelJudge::new(panel, JudgeOptions { single_order, ..JudgeOptions::default() })
}

/// Judges all pairs in batches of `batch_size`.
fn judge_all(judge: &mut PanelJudge, jobs: &[JudgeJob], batch_size: usize) {
    for batch in jobs.chunks(batch_size) {
        let verdicts = judge.judge(batch).unwrap();
        assert!(verdicts.iter().all(Result::is_ok));
    }
}

/// Measures variants `(name, single_order, batch_size)`, each with a newly loaded panel. The time
/// does not include loading.
fn measure(c: &mut Criterion, group: &str, variants: &[(&str, bool, usize)]) {
    let jobs = load_demo_pairs().unwrap();
    let mut group = c.benchmark_group(group);
    group.sample_size(10);
    group.throughput(Throughput::Elements(jobs.len() as u64));
    for (name, single_order, batch_size) in variants {
        group.bench_function(*name, |b| {
            b.iter_batched_ref(
                || load_panel_judge(*single_order).unwrap(),
                |judge| judge_all(judge, &jobs, *batch_size),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

/// Compares pair by pair with one batch, which reads the weights once for all sequences.
fn batching(c: &mut Criterion) {
    measure(c, "batch size", &[("one", false, 1), ("all", false, usize::MAX)]);
}

/// Compares one presentation order with both, which share the image and the question.
fn presentation_orders(c: &mut Criterion) {
    measure(c, "presentation orders", &[("one", true, usize::MAX), ("both", false, usize::MAX)]);
}

criterion_group!(benches, batching, presentation_orders);
criterion_main!(benches);
