//! Speed of the bootstrap: 100,000 verdicts of 50,000 images, 2,000 resamples, 17 statistics.
//!
//! `RAYON_NUM_THREADS=2 cargo bench --bench statistics` prints the times. With
//! `ACEM3_PYTHON=venv/bin/python` it also times scipy, krippendorff and scikit-learn in the same
//! run, for 10 of the statistics on data of the size and distribution of the half-point scores.

#![expect(missing_docs, reason = "criterion generates undocumented functions")]
#![expect(clippy::unwrap_used, reason = "a failed benchmark may panic")]
#![expect(clippy::print_stdout, reason = "the time of the reference is a result")]

use std::process::Command;

use acem3::statistics::{
    Bootstrap, Clusters, ContingencyCells, Defined, DistanceMetric, Icc, IccForm, RatedUnits,
    Weighting, alpha, fleiss, icc, kappa, kendall, mean_absolute, pearson, spearman,
};
use criterion::{Criterion, criterion_group, criterion_main};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CASES: usize = 100_000;
const RESAMPLES: usize = 2_000;

/// Generates scores of a judge, in steps of `1 / steps` points, and labels in whole points.
fn generate_ratings(steps: u32) -> [Vec<f64>; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut columns = [Vec::new(), Vec::new()];
    for _ in 0..CASES {
        let label: u32 = rng.random_range(0..=5);
        let offset = rng.random_range(0..=2 * steps);
        let judge = (label * steps + offset).saturating_sub(steps).min(5 * steps);
        columns[0].push(f64::from(judge) / f64::from(steps));
        columns[1].push(f64::from(label));
    }
    columns
}

/// The judge's scores and the labels, in the formats that the statistics expect.
struct Raters {
    cells: ContingencyCells,
    units: RatedUnits,
    rows: Vec<Option<Vec<f64>>>,
    clusters: Clusters,
}

impl Raters {
    fn new(steps: u32) -> Self {
        let [judge, label] = generate_ratings(steps);
        let cells = ContingencyCells::new(&judge, &label).unwrap();
        let table = cells.ratings();
        Self {
            units: table.to_rated_units(),
            rows: table.complete_rows(),
            cells,
            clusters: Clusters::new((0..CASES).map(|i| i / 2)),
        }
    }

    fn statistics(&self, weights: &[f64]) -> Vec<Defined<f64>> {
        let table = self.cells.weighted_table(weights);
        let icc_values: Defined<Icc> = icc(&self.rows, table.weights());
        let mut values = vec![
            pearson(&table),
            spearman(&table),
            kendall(&table),
            kappa(&table, Weighting::Unweighted),
            kappa(&table, Weighting::Linear),
            kappa(&table, Weighting::Quadratic),
            mean_absolute(&table),
            fleiss(&self.units, table.weights()),
            alpha(&self.units, DistanceMetric::Nominal, table.weights()),
            alpha(&self.units, DistanceMetric::Ordinal, table.weights()),
            alpha(&self.units, DistanceMetric::Interval, table.weights()),
        ];
        values.extend(IccForm::ALL.map(|form| icc_values?.value(form)));
        values
    }
}

fn bootstrap(c: &mut Criterion) {
    let mut group = c.benchmark_group("100,000 verdicts, 2,000 resamples, 17 statistics");
    group.sample_size(10);
    let bootstrap = Bootstrap { resamples: RESAMPLES, seed: 1 };
    for (name, steps) in [("half points", 2), ("expected scores to four decimals", 10_000)] {
        let raters = Raters::new(steps);
        group.bench_function(name, |b| {
            b.iter(|| bootstrap.resample(&raters.clusters, |weights| raters.statistics(weights)));
        });
    }
    group.finish();
    time_reference();
}

/// Computes 10 of the statistics with the reference libraries, on a few resamples.
const SCRIPT: &str = "
import time, numpy as np, krippendorff
from scipy import stats
from sklearn.metrics import cohen_kappa_score
n, timed_resamples, resamples = 100_000, 5, 2_000
r = np.random.default_rng(3)
y = r.integers(0, 6, n)
x = np.clip(2 * y + r.integers(-2, 3, n), 0, 10)
start = time.perf_counter()
for _ in range(timed_resamples):
    i = r.integers(0, n // 2, n // 2)
    i = np.concatenate([2 * i, 2 * i + 1])
    a, b = x[i], 2 * y[i]
    stats.pearsonr(a, b), stats.spearmanr(a, b), stats.kendalltau(a, b), np.abs(a - b).mean()
    for w in (None, 'linear', 'quadratic'):
        cohen_kappa_score(a, b, weights=w, labels=range(11))
    for m in ('nominal', 'ordinal', 'interval'):
        krippendorff.alpha(np.stack([a, b]).astype(float), level_of_measurement=m)
print((time.perf_counter() - start) / timed_resamples * resamples)
";

/// Prints the time of the reference libraries, extrapolated to all resamples.
fn time_reference() {
    let Ok(python) = std::env::var("ACEM3_PYTHON") else {
        println!("scipy: skipped, ACEM3_PYTHON is not set");
        return;
    };
    let output = Command::new(python).args(["-c", SCRIPT]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seconds = String::from_utf8(output.stdout).unwrap();
    println!(
        "scipy, krippendorff, scikit-learn: {:.0} s for 2,000 resamples of 10 of these statistics, \
         extrapolated from 5 resamples",
        seconds.trim().parse::<f64>().unwrap()
    );
}

criterion_group!(benches, bootstrap);
criterion_main!(benches);
