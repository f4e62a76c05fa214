//! What sharing is worth in judging: the demo folder, judged in two ways side by side.
//!
//! `RAYON_NUM_THREADS=2 cargo bench --bench judging` prints the times; only their ratio on one machine,
//! in one run, says anything. Without that variable the tensor library asks the system for its
//! processors at every product; the program sets it for itself. The verdicts of both ways are the same,
//! which the tests hold.

#![expect(missing_docs, reason = "criterion writes functions without any")]
#![expect(clippy::unwrap_used, reason = "a bench that fails ends")]

use std::path::Path;

use acem3::checkpoints::hub::Downloads;
use acem3::checkpoints::panel::files::PanelFiles;
use acem3::data::cases;
use acem3::data::cases::SourceOptions;
use acem3::data::images::ImageReader;
use acem3::judging::judge::{Judge as _, PairJob};
use acem3::judging::panel::{JudgeOptions, Panel, PanelJudge};
use acem3::support::device::Placement;
use acem3_vision::Limits;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

/// Every pair of the demo.
fn demo() -> anyhow::Result<Vec<PairJob>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo");
    let mut images = ImageReader::new(folder.clone(), Limits::default());
    let mut jobs = Vec::new();
    for case in cases::open(&folder, &SourceOptions::default())?.flatten() {
        let image = case.image.as_ref().map(|source| images.load(source));
        jobs.push(PairJob {
            image: image.transpose().map_err(anyhow::Error::msg)?,
            case: case.into(),
            pair: [0, 1],
        });
    }
    Ok(jobs)
}

/// The embedded panel, which remembers nothing yet.
fn fresh(single_order: bool) -> anyhow::Result<PanelJudge> {
    let panel = Panel::load(
        &PanelFiles::Embedded,
        false,
        &Placement::cpu(),
        Downloads::default(),
    )?;
    Ok(PanelJudge::new(panel, JudgeOptions { single_order }))
}

/// Judges all pairs, so many at once.
fn judge(bench: &mut PanelJudge, jobs: &[PairJob], at_once: usize) {
    for batch in jobs.chunks(at_once) {
        let verdicts = bench.judge(batch).unwrap();
        assert!(verdicts.iter().all(Result::is_ok));
    }
}

/// A new panel for every measurement, whose loading is not measured.
fn measure(c: &mut Criterion, group: &str, ways: &[(&str, bool, usize)]) {
    let jobs = demo().unwrap();
    let mut group = c.benchmark_group(group);
    group.sample_size(10);
    group.throughput(Throughput::Elements(jobs.len() as u64));
    for (name, single_order, at_once) in ways {
        group.bench_function(*name, |b| {
            b.iter_batched_ref(
                || fresh(*single_order).unwrap(),
                |bench| judge(bench, &jobs, *at_once),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

/// Sequences decoded together read the weights once.
fn batches(c: &mut Criterion) {
    measure(
        c,
        "pairs at once",
        &[("one", false, 1), ("all", false, usize::MAX)],
    );
}

/// Both orders share the image and the question.
fn orders(c: &mut Criterion) {
    measure(
        c,
        "orders of presentation",
        &[("one", true, usize::MAX), ("both", false, usize::MAX)],
    );
}

criterion_group!(benches, batches, orders);
criterion_main!(benches);
