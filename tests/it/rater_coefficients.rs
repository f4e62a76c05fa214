//! Coefficients of agreement between raters, written down from their definitions to check the program.

/// Returns Krippendorff's alpha of units with the values of their raters, for a squared difference
/// between two values. Units with one value do not count.
fn alpha(units: &[Vec<f64>], difference: impl Fn(f64, f64) -> f64) -> f64 {
    let units: Vec<&Vec<f64>> = units.iter().filter(|unit| unit.len() > 1).collect();
    let values: Vec<f64> = units.iter().flat_map(|unit| unit.iter().copied()).collect();
    let all_pairs = |values: &[f64]| {
        let pairs = values.iter().flat_map(|a| values.iter().map(|b| difference(*a, *b)));
        pairs.sum::<f64>()
    };
    let observed: f64 = units.iter().map(|unit| all_pairs(unit) / (unit.len() - 1) as f64).sum();
    let n = values.len() as f64;
    1.0 - (observed / n) / (all_pairs(&values) / (n * (n - 1.0)))
}

/// Returns Krippendorff's alpha for nominal values.
pub(crate) fn nominal_alpha(units: &[Vec<f64>]) -> f64 {
    alpha(units, |a, b| if is_equal(a, b) { 0.0 } else { 1.0 })
}

/// Returns Krippendorff's alpha for ordinal values: the difference of two values is the number of values
/// from one to the other, where both ends count half.
pub(crate) fn ordinal_alpha(units: &[Vec<f64>]) -> f64 {
    let counted = units.iter().filter(|unit| unit.len() > 1);
    let mut values: Vec<f64> = counted.flatten().copied().collect();
    values.sort_by(f64::total_cmp);
    let counts: Vec<(f64, f64)> = values
        .chunk_by(|a, b| is_equal(*a, *b))
        .map(|equal| (equal[0], equal.len() as f64))
        .collect();
    let count_within = |low: f64, high: f64| -> f64 {
        let within = counts.iter().filter(|(value, _)| (low..=high).contains(value));
        within.map(|(_, count)| count).sum()
    };
    alpha(units, |a, b| {
        let ends = f64::midpoint(count_within(a, a), count_within(b, b));
        (count_within(a.min(b), a.max(b)) - ends).powi(2)
    })
}

/// Returns Cohen's kappa of two raters for a weight of disagreements: one minus the observed
/// disagreement as a proportion of that of independent raters.
fn kappa(a: &[f64], b: &[f64], weight: impl Fn(f64, f64) -> f64) -> f64 {
    let n = a.len() as f64;
    let observed: f64 = a.iter().zip(b).map(|(x, y)| weight(*x, *y)).sum();
    let expected: f64 = a.iter().flat_map(|x| b.iter().map(|y| weight(*x, *y))).sum();
    1.0 - (observed / n) / (expected / (n * n))
}

/// Returns Cohen's kappa with quadratic weights.
pub(crate) fn quadratic_kappa(a: &[f64], b: &[f64]) -> f64 {
    kappa(a, b, |x, y| (x - y).powi(2))
}

/// Returns Cohen's kappa without weights.
pub(crate) fn unweighted_kappa(a: &[f64], b: &[f64]) -> f64 {
    kappa(a, b, |x, y| if is_equal(x, y) { 0.0 } else { 1.0 })
}

/// Returns ICC(2,1) of Shrout and Fleiss (1979): rows are units, columns are raters.
pub(crate) fn icc_two_single(rows: &[Vec<f64>]) -> f64 {
    let (n, k) = (rows.len() as f64, rows[0].len() as f64);
    let mean = rows.iter().flatten().sum::<f64>() / (n * k);
    let square = |x: f64| x * x;
    let row_means: Vec<f64> = rows.iter().map(|row| row.iter().sum::<f64>() / k).collect();
    let columns = 0..rows[0].len();
    let column_means = columns.map(|j| rows.iter().map(|row| row[j]).sum::<f64>() / n);
    let between_rows = k * row_means.iter().map(|m| square(m - mean)).sum::<f64>();
    let between_columns = n * column_means.map(|m| square(m - mean)).sum::<f64>();
    let total: f64 = rows.iter().flatten().map(|x| square(x - mean)).sum();
    let rows_square = between_rows / (n - 1.0);
    let columns_square = between_columns / (k - 1.0);
    let error_square = (total - between_rows - between_columns) / ((n - 1.0) * (k - 1.0));
    (rows_square - error_square)
        / (rows_square + (k - 1.0) * error_square + k * (columns_square - error_square) / n)
}

/// Ratings are whole numbers, or means of the same few numbers.
fn is_equal(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn coefficients_match_published_examples() {
    // Shrout and Fleiss, table 2; ICC(2,1) is 0.29.
    let rows =
        [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]];
    let rows: Vec<Vec<f64>> = rows.map(|row| row.map(f64::from).to_vec()).to_vec();
    assert!((icc_two_single(&rows) - 0.29).abs() < 0.005);
    // Krippendorff, Computing Krippendorff's alpha-reliability (2011), section C; 0 is a missing value.
    let raters = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
        [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
    ];
    let unit = |i: usize| {
        let values = raters.iter().map(|rater| rater[i]).filter(|value| *value > 0);
        values.map(f64::from).collect::<Vec<f64>>()
    };
    let units: Vec<Vec<f64>> = (0..12).map(unit).collect();
    assert!((nominal_alpha(&units) - 0.743).abs() < 0.0005);
    assert!((ordinal_alpha(&units) - 0.815).abs() < 0.0005);
    // Cohen (1960): proportions of agreement 0.7, by chance 0.41 give 0.49.
    let counts = [(0.0, 0.0, 88), (0.0, 1.0, 14), (0.0, 2.0, 18), (1.0, 0.0, 10), (1.0, 1.0, 40)];
    let more = [(1.0, 2.0, 10), (2.0, 0.0, 2), (2.0, 1.0, 6), (2.0, 2.0, 12)];
    let all = counts.iter().chain(&more);
    let (a, b): (Vec<f64>, Vec<f64>) =
        all.flat_map(|(x, y, count)| std::iter::repeat_n((*x, *y), *count)).unzip();
    assert!((unweighted_kappa(&a, &b) - 0.492).abs() < 0.0005);
    assert!((quadratic_kappa(&a, &b) - 0.4545).abs() < 0.0005);
}
