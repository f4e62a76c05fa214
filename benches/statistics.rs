//! What agreement costs: 100,000 verdicts, 2,000 draws of 50,000 images, every statistic in each draw.
//!
//! `RAYON_NUM_THREADS=2 cargo bench --bench statistics` prints the times; with `ACEM3_PYTHON=venv/bin/python`
//! also those of scipy, krippendorff and scikit-learn for the same statistics of the same numbers, in the same run.

#![expect(missing_docs, reason = "criterion writes functions without any")]
#![expect(clippy::unwrap_used, reason = "a bench that fails ends")]
#![expect(clippy::print_stdout, reason = "the reference's time is a result")]

use std::process::Command;

use acem3::statistics::{
    Bootstrap, Clusters, ContingencyCells, Defined, DistanceMetric, Icc, IccForm, RatedUnits,
    Weighting, alpha, fleiss, icc, kappa, kendall, mean_absolute, pearson, spearman,
};
use criterion::{Criterion, criterion_group, criterion_main};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CASES: usize = 100_000;
const DRAWS: usize = 2_000;

/// Judge and label in half points and whole points, or as finely as expected scores are.
fn ratings(steps: u32) -> [Vec<f64>; 2] {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut columns = [Vec::new(), Vec::new()];
    for _ in 0..CASES {
        let label: u32 = random.random_range(0..=5);
        let off = random.random_range(0..=2 * steps);
        let judge = (label * steps + off).saturating_sub(steps).min(5 * steps);
        columns[0].push(f64::from(judge) / f64::from(steps));
        columns[1].push(f64::from(label));
    }
    columns
}

/// Two raters in the forms that statistics want.
struct Raters {
    cells: ContingencyCells,
    units: RatedUnits,
    rows: Vec<Option<Vec<f64>>>,
    clusters: Clusters,
}

impl Raters {
    fn new(steps: u32) -> Self {
        let [judge, label] = ratings(steps);
        let cells = ContingencyCells::new(&judge, &label).unwrap();
        let table = cells.ratings();
        Self {
            units: table.paired(),
            rows: table.complete(),
            cells,
            clusters: Clusters::new((0..CASES).map(|i| i / 2)),
        }
    }

    fn statistics(&self, weights: &[f64]) -> Vec<Defined<f64>> {
        let table = self.cells.weighted_table(weights);
        let squares: Defined<Icc> = icc(&self.rows, table.weights());
        let mut values = vec![
            pearson(&table),
            spearman(&table),
            kendall(&table),
            kappa(&table, Weighting::Plain),
            kappa(&table, Weighting::Linear),
            kappa(&table, Weighting::Quadratic),
            mean_absolute(&table),
            fleiss(&self.units, table.weights()),
            alpha(&self.units, DistanceMetric::Nominal, table.weights()),
            alpha(&self.units, DistanceMetric::Ordinal, table.weights()),
            alpha(&self.units, DistanceMetric::Interval, table.weights()),
        ];
        values.extend(IccForm::ALL.map(|form| squares?.value(form)));
        values
    }
}

fn bootstrap(c: &mut Criterion) {
    let mut group = c.benchmark_group("100,000 verdicts, 2,000 draws, 17 statistics");
    group.sample_size(10);
    let draws = Bootstrap {
        draws: DRAWS,
        seed: 1,
    };
    for (name, steps) in [
        ("half points", 2),
        ("expected scores to four decimals", 10_000),
    ] {
        let raters = Raters::new(steps);
        group.bench_function(name, |b| {
            b.iter(|| draws.draw(&raters.clusters, |weights| raters.statistics(weights)));
        });
    }
    group.finish();
    reference();
}

/// The same by the reference libraries, timed on a few draws.
const SCRIPT: &str = "
import time, numpy as np, krippendorff
from scipy import stats
from sklearn.metrics import cohen_kappa_score
n, few, draws = 100_000, 5, 2_000
r = np.random.default_rng(3)
y = r.integers(0, 6, n)
x = np.clip(2 * y + r.integers(-2, 3, n), 0, 10)
start = time.perf_counter()
for _ in range(few):
    i = r.integers(0, n // 2, n // 2)
    i = np.concatenate([2 * i, 2 * i + 1])
    a, b = x[i], 2 * y[i]
    stats.pearsonr(a, b), stats.spearmanr(a, b), stats.kendalltau(a, b), np.abs(a - b).mean()
    for w in (None, 'linear', 'quadratic'):
        cohen_kappa_score(a, b, weights=w, labels=range(11))
    for m in ('nominal', 'ordinal', 'interval'):
        krippendorff.alpha(np.stack([a, b]).astype(float), level_of_measurement=m)
print((time.perf_counter() - start) / few * draws)
";

fn reference() {
    let Ok(python) = std::env::var("ACEM3_PYTHON") else {
        println!("scipy: not timed, ACEM3_PYTHON is not set");
        return;
    };
    let output = Command::new(python).args(["-c", SCRIPT]).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let seconds = String::from_utf8(output.stdout).unwrap();
    println!(
        "scipy, krippendorff, scikit-learn: {:.0} s for 2,000 draws of 10 of these statistics, from 5 draws",
        seconds.trim().parse::<f64>().unwrap()
    );
}

criterion_group!(benches, bootstrap);
criterion_main!(benches);
