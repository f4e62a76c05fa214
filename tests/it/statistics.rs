//! Every statistic against the reference libraries: `assets/golden/make_statistics.py` says how the
//! values were made, and draws the same inputs from the same integers.

use std::cmp::Ordering;

use acem3::statistics::{
    ContingencyCells, Davidson, Defined, DistanceMetric, Icc, IccForm, Isotonic, LinearFit,
    PairwiseOutcomes, RatingMatrix, Weighting, alpha, binomial_tail, f_quantile, fleiss, holm,
    kappa, kendall, mcnemar, mean_absolute, pearson, spearman,
};
use serde_json::Value;

use crate::encoders::{golden, tensors};

/// SplitMix64, as in the script.
struct Integers(u64);

impl Integers {
    fn new(case: usize) -> Self {
        Self((case as u64) << 32)
    }

    fn below(&mut self, m: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 33) % m
    }
}

fn rows(name: &str) -> Vec<Vec<f32>> {
    let tensors = tensors(&golden().join("statistics/random.safetensors"));
    tensors[name].to_vec2().unwrap()
}

fn exact() -> Value {
    let text = std::fs::read_to_string(golden().join("statistics/exact.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Holds a value to the reference's: NaN is undefined, infinity is nothing to compare with.
fn hold(case: usize, name: &str, got: Defined<f64>, want: f32) {
    if want.is_infinite() {
        return;
    }
    match got {
        Err(reason) => assert!(want.is_nan(), "{name} of {case}: {reason}, expected {want}"),
        Ok(value) => {
            let near = (value - f64::from(want)).abs() <= 2e-6 * (1.0 + f64::from(want).abs());
            assert!(near, "{name} of {case}: {value}, expected {want}");
        }
    }
}

/// As `pair` of the script.
fn pair(case: usize) -> [Vec<f64>; 2] {
    let mut r = Integers::new(case);
    let kind = r.below(8);
    let n = match kind {
        0 => r.below(3),
        1 => 2,
        _ => 3 + r.below(40),
    };
    let levels = if kind == 4 { 200 } else { 2 + r.below(10) };
    let mut columns = [Vec::new(), Vec::new()];
    for _ in 0..n {
        let (mut a, mut b, copied) = (r.below(levels), r.below(levels), r.below(2));
        match kind {
            2 => a = 1,
            3 => b = 1,
            5.. if copied == 0 => b = a,
            _ => {}
        }
        columns[0].push(a as f64 / 2.0);
        columns[1].push(b as f64 / 2.0);
    }
    columns
}

#[test]
fn two_raters_as_scipy_and_scikit_learn() {
    let names = [
        "pearson",
        "spearman",
        "kendall",
        "plain",
        "linear",
        "quadratic",
        "mae",
    ];
    let all = rows("pairs");
    assert_eq!(all.len(), 10_000);
    for (case, row) in all.iter().enumerate() {
        let [x, y] = pair(case);
        let cells = ContingencyCells::new(&x, &y);
        let of = |statistic: &dyn Fn(&acem3::statistics::ContingencyTable<'_>) -> Defined<f64>| {
            cells
                .as_ref()
                .map_err(|e| *e)
                .and_then(|c| statistic(&c.table()))
        };
        let got = [
            of(&pearson),
            of(&spearman),
            of(&kendall),
            of(&|t| kappa(t, Weighting::Plain)),
            of(&|t| kappa(t, Weighting::Linear)),
            of(&|t| kappa(t, Weighting::Quadratic)),
            of(&mean_absolute),
        ];
        for ((name, got), want) in names.iter().zip(got).zip(row) {
            hold(case, name, got, *want);
        }
    }
}

/// As `ratings` of the script.
fn ratings(case: usize) -> Vec<Vec<Option<f64>>> {
    let mut r = Integers::new(case);
    let (raters, units, levels) = (1 + r.below(5), 1 + r.below(12), 1 + r.below(6));
    let missing = r.below(3);
    let mut rows = Vec::new();
    for _ in 0..units {
        let base = r.below(levels);
        let mut row = Vec::new();
        for _ in 0..raters {
            let (noise, present, own) = (r.below(2), r.below(4), r.below(levels));
            let value = if noise == 1 { base } else { own };
            row.push((present >= missing).then_some(value as f64 / 2.0));
        }
        rows.push(row);
    }
    rows
}

/// The three alphas, Fleiss' kappa, the six intraclass correlations and their twelve ends.
fn of_ratings(rows: &[Vec<Option<f64>>]) -> Vec<Defined<f64>> {
    let ratings = RatingMatrix::of_rows(rows).unwrap();
    let (units, once) = (ratings.paired(), vec![1.0; rows.len()]);
    let mut got: Vec<Defined<f64>> = [
        DistanceMetric::Nominal,
        DistanceMetric::Ordinal,
        DistanceMetric::Interval,
    ]
    .map(|metric| alpha(&units, metric, &once))
    .into();
    got.push(fleiss(&units, &once));
    let squares = Icc::of(&ratings);
    got.extend(IccForm::ALL.map(|form| squares?.value(form)));
    for form in IccForm::ALL {
        let ends = squares.and_then(|s| s.interval(form));
        got.extend([0, 1].map(|end| ends.map(|ends| ends[end])));
    }
    got
}

#[test]
fn several_raters_as_krippendorff_statsmodels_and_pingouin() {
    let all = rows("ratings");
    let mut compared = [0; 22];
    for (case, row) in all.iter().enumerate() {
        for (i, (got, want)) in of_ratings(&ratings(case)).into_iter().zip(row).enumerate() {
            hold(case, &format!("value {i}"), got, *want);
            compared[i] += usize::from(want.is_finite());
        }
    }
    // Not everything was left out.
    assert!(compared.iter().all(|n| *n > 400), "{compared:?}");
}

/// Krippendorff (2011), section C, and Shrout and Fleiss (1979), tables 2 and 4: as the library has them, and as
/// they are printed.
#[test]
fn published_tables() {
    let exact = exact();
    let table = |name: &str| -> Vec<Vec<Option<f64>>> {
        serde_json::from_value(exact[name]["rows"].clone()).unwrap()
    };
    let held = |got: &[Defined<f64>], want: &Value, printed: &[f64], digits: i32| {
        let want: Vec<f64> = serde_json::from_value(want.clone()).unwrap();
        for ((got, want), printed) in got.iter().zip(want).zip(printed) {
            let got = got.unwrap();
            assert!((got - want).abs() < 1e-10, "{got}, expected {want}");
            assert!(
                (got - printed).abs() <= 0.501 * 10f64.powi(-digits),
                "{got}, {printed}"
            );
        }
    };
    let units = of_ratings(&table("krippendorff"));
    held(
        &units[..3],
        &exact["krippendorff"]["alpha"],
        &[0.743, 0.815, 0.849],
        3,
    );
    let judges = of_ratings(&table("shrout_fleiss"));
    let printed = [0.17, 0.29, 0.71, 0.44, 0.62, 0.91];
    held(&judges[4..10], &exact["shrout_fleiss"]["icc"], &printed, 2);
    let ends: Vec<f64> = serde_json::from_value(exact["shrout_fleiss"]["icc"].clone()).unwrap();
    for (got, want) in judges[10..].iter().zip(&ends[6..]) {
        assert!(
            (got.unwrap() - want).abs() < 1e-8,
            "{got:?}, expected {want}"
        );
    }
}

/// The worked example of Fleiss (1971) as encyclopaedias have it: ten things, fourteen raters, 0.210.
#[test]
fn fleiss_by_hand() {
    let counts = [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ];
    let row = |counts: &[usize; 5]| -> Vec<Option<f64>> {
        let values = counts.iter().enumerate();
        values
            .flat_map(|(v, n)| std::iter::repeat_n(Some(v as f64), *n))
            .collect()
    };
    let rows: Vec<_> = counts.iter().map(row).collect();
    let units = RatingMatrix::of_rows(&rows).unwrap().paired();
    let value = fleiss(&units, &[1.0; 10]).unwrap();
    assert!((value - 0.210).abs() < 5e-4, "{value}");
}

#[test]
fn quantiles_tails_and_tests() {
    let exact = exact();
    let rows =
        |name: &str| -> Vec<Vec<f64>> { serde_json::from_value(exact[name].clone()).unwrap() };
    let near = |got: f64, want: f64, of: &[f64]| {
        let distance = (got - want).abs() / want.abs().max(1e-300);
        assert!(distance < 1e-8, "{of:?}: {got}, expected {want}");
    };
    for row in rows("f_quantiles") {
        near(f_quantile(row[0], row[1], row[2]).unwrap(), row[3], &row);
    }
    for row in rows("binomial_tails") {
        near(binomial_tail(row[0] as u64, row[1] as u64), row[2], &row);
    }
    for row in rows("mcnemar") {
        let of = |right, n: f64| std::iter::repeat_n(right, n as usize);
        let pairs = of((true, false), row[0]).chain(of((false, true), row[1]));
        near(
            mcnemar(pairs.chain([(true, true), (false, false)])).p,
            row[2],
            &row,
        );
    }
    let values =
        |name: &str| -> Vec<f64> { serde_json::from_value(exact["holm"][name].clone()).unwrap() };
    for (got, want) in holm(&values("p")).into_iter().zip(values("corrected")) {
        near(got, want, &[]);
    }
}

/// As `tournament` of the script.
fn tournament(case: usize) -> (usize, Vec<([usize; 2], Ordering)>) {
    let mut r = Integers::new(case);
    let (models, tied) = (2 + r.below(4), r.below(2) == 1);
    let games = 10 + r.below(60);
    let game = |_| {
        let a = r.below(models);
        let b = (a + 1 + r.below(models - 1)) % models;
        let luck = r.below(10);
        let order = if tied && luck < 3 {
            Ordering::Equal
        } else if luck + a < 5 + b {
            Ordering::Greater
        } else {
            Ordering::Less
        };
        ([a as usize, b as usize], order)
    };
    let games = (0..games).map(game).collect();
    (models as usize, games)
}

#[test]
fn strengths_as_a_log_linear_model_has_them() {
    let all = rows("tournaments");
    let fitted = all.iter().filter(|row| !row[0].is_nan()).count();
    assert!(fitted > 200, "{fitted}");
    for (case, row) in all.iter().enumerate() {
        let (models, games) = tournament(case);
        let fit = Davidson::fit(&PairwiseOutcomes::new(
            models,
            &games,
            &vec![1.0; games.len()],
        ));
        for (i, want) in row[..models].iter().enumerate() {
            let got = fit.as_ref().map(|f| f.strengths[i]).map_err(|e| *e);
            hold(case, "strength", got, *want);
        }
        hold(case, "ties", fit.map(|f| f.ties), row[5]);
    }
}

#[test]
fn curves_as_scikit_learn_and_scipy() {
    for (case, row) in rows("curves").iter().enumerate() {
        let mut r = Integers::new(case);
        let mut columns = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..=r.below(30) {
            let [x, y, weight] = [r.below(20), r.below(11), 1 + r.below(3)];
            columns[0].push(x as f64 / 4.0);
            columns[1].push(y as f64 / 2.0);
            columns[2].push(weight as f64);
        }
        let [x, y, weights] = &columns;
        let curve = Isotonic::fit(x, y, weights).unwrap();
        for (i, want) in row[..11].iter().enumerate() {
            hold(case, "curve", Ok(curve.at(i as f64 / 2.0)), *want);
        }
        let line = LinearFit::fit(x, y, weights);
        hold(case, "slope", line.map(|l| l.slope), row[11]);
        hold(case, "intercept", line.map(|l| l.intercept), row[12]);
    }
}
