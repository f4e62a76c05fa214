//! Statistics compared with reference libraries. `assets/golden/make_statistics.py` generates the
//! expected values. Script and tests derive their inputs from the same pseudorandom integers.

use std::cmp::Ordering;

use acem3::statistics::{
    ContingencyCells, Davidson, Defined, DistanceMetric, Icc, IccForm, Isotonic, LinearFit,
    PairwiseOutcomes, RatingMatrix, Weighting, alpha, binomial_tail, f_quantile, fleiss,
    holm_adjust, kappa, kendall, mcnemar, mean_absolute, pearson, spearman,
};
use serde_json::Value;

use crate::encoders::{golden_folder, load_tensors};

/// SplitMix64 generator, equal to the script's.
struct SplitMix64(u64);

impl SplitMix64 {
    fn new(case: usize) -> Self {
        Self((case as u64) << 32)
    }

    /// Returns an integer from 0 to `m` − 1.
    fn below(&mut self, m: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 33) % m
    }
}

/// Loads expected values, one row per case.
fn expected_rows(name: &str) -> Vec<Vec<f32>> {
    let tensors = load_tensors(&golden_folder().join("statistics/random.safetensors"));
    tensors[name].to_vec2().unwrap()
}

/// Loads published tables and values that are compared in f64.
fn exact_values() -> Value {
    let text = std::fs::read_to_string(golden_folder().join("statistics/exact.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Asserts that a value equals the reference. The reference NaN means undefined, and infinity means
/// that the library has no value to compare with.
fn assert_matches(case: usize, name: &str, got: Defined<f64>, want: f32) {
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

/// Generates the scores of two raters, like `pair` in the script.
fn score_pair(case: usize) -> [Vec<f64>; 2] {
    let mut r = SplitMix64::new(case);
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
fn two_rater_statistics_match_scipy_and_scikit_learn() {
    let names = ["pearson", "spearman", "kendall", "plain", "linear", "quadratic", "mae"];
    let all = expected_rows("pairs");
    assert_eq!(all.len(), 10_000);
    for (case, row) in all.iter().enumerate() {
        let [x, y] = score_pair(case);
        let cells = ContingencyCells::new(&x, &y);
        let evaluate =
            |statistic: &dyn Fn(&acem3::statistics::ContingencyTable<'_>) -> Defined<f64>| {
                cells.as_ref().map_err(|e| *e).and_then(|c| statistic(&c.table()))
            };
        let got = [
            evaluate(&pearson),
            evaluate(&spearman),
            evaluate(&kendall),
            evaluate(&|t| kappa(t, Weighting::Unweighted)),
            evaluate(&|t| kappa(t, Weighting::Linear)),
            evaluate(&|t| kappa(t, Weighting::Quadratic)),
            evaluate(&mean_absolute),
        ];
        for ((name, got), want) in names.iter().zip(got).zip(row) {
            assert_matches(case, name, got, *want);
        }
    }
}

/// Generates ratings with missing values, like `ratings` in the script. Rows are rated units.
fn random_ratings(case: usize) -> Vec<Vec<Option<f64>>> {
    let mut r = SplitMix64::new(case);
    let (raters, units, levels) = (1 + r.below(5), 1 + r.below(12), 1 + r.below(6));
    let missing = r.below(3);
    let mut rows = Vec::new();
    for _ in 0..units {
        let base = r.below(levels);
        let mut row = Vec::new();
        for _ in 0..raters {
            let (correlated, present, independent) = (r.below(2), r.below(4), r.below(levels));
            let value = if correlated == 1 { base } else { independent };
            row.push((present >= missing).then_some(value as f64 / 2.0));
        }
        rows.push(row);
    }
    rows
}

/// Returns the three alphas, Fleiss' kappa, the six intraclass correlations, and the lower and
/// upper bounds of their intervals.
fn multi_rater_statistics(rows: &[Vec<Option<f64>>]) -> Vec<Defined<f64>> {
    let ratings = RatingMatrix::from_rows(rows).unwrap();
    let (units, weights) = (ratings.to_rated_units(), vec![1.0; rows.len()]);
    let mut got: Vec<Defined<f64>> =
        [DistanceMetric::Nominal, DistanceMetric::Ordinal, DistanceMetric::Interval]
            .map(|metric| alpha(&units, metric, &weights))
            .into();
    got.push(fleiss(&units, &weights));
    let squares = Icc::from_ratings(&ratings);
    got.extend(IccForm::ALL.map(|form| squares?.value(form)));
    for form in IccForm::ALL {
        let interval = squares.and_then(|s| s.interval(form));
        got.extend([0, 1].map(|bound| interval.map(|interval| interval[bound])));
    }
    got
}

#[test]
fn multi_rater_statistics_match_krippendorff_statsmodels_and_pingouin() {
    let all = expected_rows("ratings");
    let mut compared = [0; 22];
    for (case, row) in all.iter().enumerate() {
        let statistics = multi_rater_statistics(&random_ratings(case));
        for (i, (got, want)) in statistics.into_iter().zip(row).enumerate() {
            assert_matches(case, &format!("value {i}"), got, *want);
            compared[i] += usize::from(want.is_finite());
        }
    }
    // Each statistic is defined in enough cases.
    assert!(compared.iter().all(|n| *n > 400), "{compared:?}");
}

/// Krippendorff (2011), section C, and Shrout and Fleiss (1979), tables 2 and 4. The values must
/// equal those of the reference libraries and, rounded, those in the papers.
#[test]
fn statistics_match_published_tables() {
    let exact = exact_values();
    let table = |name: &str| -> Vec<Vec<Option<f64>>> {
        serde_json::from_value(exact[name]["rows"].clone()).unwrap()
    };
    let assert_all_match = |got: &[Defined<f64>], want: &Value, printed: &[f64], digits: i32| {
        let want: Vec<f64> = serde_json::from_value(want.clone()).unwrap();
        for ((got, want), printed) in got.iter().zip(want).zip(printed) {
            let got = got.unwrap();
            assert!((got - want).abs() < 1e-10, "{got}, expected {want}");
            assert!((got - printed).abs() <= 0.501 * 10f64.powi(-digits), "{got}, {printed}");
        }
    };
    let krippendorff = multi_rater_statistics(&table("krippendorff"));
    assert_all_match(
        &krippendorff[..3],
        &exact["krippendorff"]["alpha"],
        &[0.743, 0.815, 0.849],
        3,
    );
    let shrout_fleiss = multi_rater_statistics(&table("shrout_fleiss"));
    let printed = [0.17, 0.29, 0.71, 0.44, 0.62, 0.91];
    assert_all_match(&shrout_fleiss[4..10], &exact["shrout_fleiss"]["icc"], &printed, 2);
    let expected: Vec<f64> = serde_json::from_value(exact["shrout_fleiss"]["icc"].clone()).unwrap();
    for (got, want) in shrout_fleiss[10..].iter().zip(&expected[6..]) {
        assert!((got.unwrap() - want).abs() < 1e-8, "{got:?}, expected {want}");
    }
}

/// A widely printed example of Fleiss' kappa: ten units, fourteen raters, five categories, kappa
/// 0.210.
#[test]
fn fleiss_kappa_matches_printed_example() {
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
        values.flat_map(|(v, n)| std::iter::repeat_n(Some(v as f64), *n)).collect()
    };
    let rows: Vec<_> = counts.iter().map(row).collect();
    let units = RatingMatrix::from_rows(&rows).unwrap().to_rated_units();
    let value = fleiss(&units, &[1.0; 10]).unwrap();
    assert!((value - 0.210).abs() < 5e-4, "{value}");
}

#[test]
fn quantiles_tail_probabilities_and_tests_match_references() {
    let exact = exact_values();
    let rows =
        |name: &str| -> Vec<Vec<f64>> { serde_json::from_value(exact[name].clone()).unwrap() };
    let assert_near = |got: f64, want: f64, input: &[f64]| {
        let distance = (got - want).abs() / want.abs().max(1e-300);
        assert!(distance < 1e-8, "{input:?}: {got}, expected {want}");
    };
    for row in rows("f_quantiles") {
        assert_near(f_quantile(row[0], row[1], row[2]).unwrap(), row[3], &row);
    }
    for row in rows("binomial_tails") {
        assert_near(binomial_tail(row[0] as u64, row[1] as u64), row[2], &row);
    }
    for row in rows("mcnemar") {
        let repeat = |pair, n: f64| std::iter::repeat_n(pair, n as usize);
        let pairs = repeat((true, false), row[0]).chain(repeat((false, true), row[1]));
        assert_near(mcnemar(pairs.chain([(true, true), (false, false)])).p, row[2], &row);
    }
    let values =
        |name: &str| -> Vec<f64> { serde_json::from_value(exact["holm"][name].clone()).unwrap() };
    for (got, want) in holm_adjust(&values("p")).into_iter().zip(values("corrected")) {
        assert_near(got, want, &[]);
    }
}

/// Generates the number of models and the outcomes of their games, like `tournament` in the script.
fn tournament(case: usize) -> (usize, Vec<([usize; 2], Ordering)>) {
    let mut r = SplitMix64::new(case);
    let (models, tied) = (2 + r.below(4), r.below(2) == 1);
    let game_count = 10 + r.below(60);
    let game = |_| {
        let a = r.below(models);
        let b = (a + 1 + r.below(models - 1)) % models;
        let chance = r.below(10);
        let order = if tied && chance < 3 {
            Ordering::Equal
        } else if chance + a < 5 + b {
            Ordering::Greater
        } else {
            Ordering::Less
        };
        ([a as usize, b as usize], order)
    };
    let games = (0..game_count).map(game).collect();
    (models as usize, games)
}

#[test]
fn davidson_strengths_match_log_linear_model() {
    let all = expected_rows("tournaments");
    let fitted = all.iter().filter(|row| !row[0].is_nan()).count();
    assert!(fitted > 200, "{fitted}");
    for (case, row) in all.iter().enumerate() {
        let (models, games) = tournament(case);
        let fit = Davidson::fit(&PairwiseOutcomes::new(models, &games, &vec![1.0; games.len()]));
        for (i, want) in row[..models].iter().enumerate() {
            let got = fit.as_ref().map(|f| f.strengths[i]).map_err(|e| *e);
            assert_matches(case, "strength", got, *want);
        }
        assert_matches(case, "ties", fit.map(|f| f.tie_parameter), row[5]);
    }
}

#[test]
fn curves_match_scikit_learn_and_scipy() {
    for (case, row) in expected_rows("curves").iter().enumerate() {
        let mut r = SplitMix64::new(case);
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
            assert_matches(case, "curve", Ok(curve.eval(i as f64 / 2.0)), *want);
        }
        let line = LinearFit::fit(x, y, weights);
        assert_matches(case, "slope", line.map(|l| l.slope), row[11]);
        assert_matches(case, "intercept", line.map(|l| l.intercept), row[12]);
    }
}
