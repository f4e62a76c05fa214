//! Cohen's kappa: agreement of two raters beyond chance.

use crate::statistics::agreement::contingency::ContingencyTable;
use crate::statistics::undefined::{Defined, Undefined, require_at_least};

/// Weight of a disagreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighting {
    /// 1 for every disagreement.
    Unweighted,
    /// The absolute difference.
    Linear,
    /// The squared difference.
    Quadratic,
}

/// Computes Cohen's kappa (Cohen 1960, 1968), at most 1; 0 is chance.
///
/// Distances use the values themselves, so unused values of the scale count. This is
/// scikit-learn's `cohen_kappa_score` with all points of the scale as `labels`.
///
/// # Errors
///
/// There is no case, or both raters gave the same single value to all cases.
pub fn kappa(table: &ContingencyTable<'_>, weighting: Weighting) -> Defined<f64> {
    let n = table.total();
    require_at_least(1, n as usize, ["case", "cases"])?;
    let observed: f64 = table.entries().map(|(a, b, w)| w * weighting.distance(a, b)).sum();
    let expected = expected_disagreement(table, weighting) / n;
    if is_one_value(table) {
        return Err(Undefined::NoVariation);
    }
    Ok(1.0 - observed / expected)
}

/// Returns true if both raters gave the same single value to all cases.
fn is_one_value(table: &ContingencyTable<'_>) -> bool {
    let mut entries = table.entries();
    let first = entries.next();
    first.is_some_and(|(a, b, _)| a.total_cmp(&b).is_eq()) && entries.next().is_none()
}

impl Weighting {
    fn distance(self, a: f64, b: f64) -> f64 {
        match self {
            // Exact comparison is correct: equal values have equal bits.
            Self::Unweighted => f64::from(u8::from((a - b).abs() > 0.0)),
            Self::Linear => (a - b).abs(),
            Self::Quadratic => (a - b) * (a - b),
        }
    }
}

/// Computes the expected disagreement of the two marginal distributions, in one pass over the
/// values.
fn expected_disagreement(table: &ContingencyTable<'_>, weighting: Weighting) -> f64 {
    let [x, y] = table.marginal_values();
    match weighting {
        Weighting::Unweighted => {
            let all: f64 = weighted_sum(&x, |_| 1.0) * weighted_sum(&y, |_| 1.0);
            let index_of = |value: f64| x.binary_search_by(|(a, _)| a.total_cmp(&value));
            let agreement = y.iter().filter_map(|(b, v)| Some(x.get(index_of(*b).ok()?)?.1 * v));
            all - agreement.sum::<f64>()
        }
        Weighting::Linear => {
            let (weight, moment) = (weighted_sum(&x, |_| 1.0), weighted_sum(&x, |a| a));
            let (mut below, mut below_moment, mut first) = (0.0, 0.0, x.iter().peekable());
            let mut distance = 0.0;
            for (b, v) in &y {
                while let Some((a, u)) = first.next_if(|(a, _)| a <= b) {
                    (below, below_moment) = (below + u, below_moment + u * a);
                }
                let above = moment - below_moment - b * (weight - below);
                distance += v * (b * below - below_moment + above);
            }
            distance
        }
        Weighting::Quadratic => {
            // Centre the values to avoid cancellation.
            let centre = weighted_sum(&x, |a| a) / weighted_sum(&x, |_| 1.0);
            let moments = |margin: &[(f64, f64)]| {
                [0, 1, 2].map(|power| weighted_sum(margin, |value| (value - centre).powi(power)))
            };
            let ([n, a, aa], [m, b, bb]) = (moments(&x), moments(&y));
            m * aa + n * bb - 2.0 * a * b
        }
    }
}

fn weighted_sum(margin: &[(f64, f64)], function: impl Fn(f64) -> f64) -> f64 {
    margin.iter().map(|(value, weight)| weight * function(*value)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::ContingencyCells;

    /// Converts a table of counts to two columns.
    fn columns(counts: &[&[usize]]) -> [Vec<f64>; 2] {
        let mut columns = [Vec::new(), Vec::new()];
        for (i, row) in counts.iter().enumerate() {
            for (j, &n) in row.iter().enumerate() {
                columns[0].extend(std::iter::repeat_n(i as f64, n));
                columns[1].extend(std::iter::repeat_n(j as f64, n));
            }
        }
        columns
    }

    fn kappa_of_counts(counts: &[&[usize]], weighting: Weighting) -> Defined<f64> {
        let [x, y] = columns(counts);
        kappa(&ContingencyCells::new(&x, &y)?.table(), weighting)
    }

    /// Cohen (1960), table 1, as counts of 200: observed 0.70, expected 0.41, kappa 0.492.
    #[test]
    fn kappa_equals_cohen_1960() {
        let table: [&[usize]; 3] = [&[88, 14, 18], &[10, 40, 10], &[2, 6, 12]];
        let value = kappa_of_counts(&table, Weighting::Unweighted).unwrap();
        assert!((value - (0.70 - 0.41) / (1.0 - 0.41)).abs() < 1e-12, "{value}");
    }

    #[test]
    fn kappa_is_undefined_for_a_single_value() {
        assert_eq!(kappa_of_counts(&[&[7]], Weighting::Linear), Err(Undefined::NoVariation));
        // One rater alone is constant: exactly chance.
        assert!(kappa_of_counts(&[&[3, 4]], Weighting::Quadratic).unwrap().abs() < 1e-12);
    }
}
