//! Cohen's kappa: agreement beyond what the two raters' habits alone would give.

use crate::statistics::agreement::contingency::ContingencyTable;
use crate::statistics::undefined::{Defined, Undefined, at_least};

/// How much a disagreement counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighting {
    /// All alike.
    Plain,
    /// By the distance of the values.
    Linear,
    /// By its square.
    Quadratic,
}

/// Cohen's kappa (Cohen 1960, 1968), at most 1; 0 is chance.
///
/// Distances are those of the values themselves, so that a value nobody gave leaves its gap. This is
/// scikit-learn's `cohen_kappa_score` with all points of the scale as `labels`.
///
/// # Errors
///
/// Without a case, and where both raters gave one and the same value throughout.
pub fn kappa(table: &ContingencyTable<'_>, weighting: Weighting) -> Defined<f64> {
    let n = table.total();
    at_least(1, n as usize, "cases")?;
    let observed: f64 = table
        .entries()
        .map(|(a, b, w)| w * weighting.of(a, b))
        .sum();
    let expected = expected(table, weighting) / n;
    if is_one_value(table) {
        return Err(Undefined::NoVariation);
    }
    Ok(1.0 - observed / expected)
}

/// Whether both raters gave one and the same value throughout.
fn is_one_value(table: &ContingencyTable<'_>) -> bool {
    let mut entries = table.entries();
    let first = entries.next();
    first.is_some_and(|(a, b, _)| a.total_cmp(&b).is_eq()) && entries.next().is_none()
}

impl Weighting {
    fn of(self, a: f64, b: f64) -> f64 {
        match self {
            // Values are compared as given: equal ones came from equal bits.
            Self::Plain => f64::from(u8::from((a - b).abs() > 0.0)),
            Self::Linear => (a - b).abs(),
            Self::Quadratic => (a - b) * (a - b),
        }
    }
}

/// The disagreement of all cases of the one with all of the other, in one pass over the values.
fn expected(table: &ContingencyTable<'_>, weighting: Weighting) -> f64 {
    let [x, y] = table.sides();
    match weighting {
        Weighting::Plain => {
            let all: f64 = sum(&x, |_| 1.0) * sum(&y, |_| 1.0);
            let of = |value: f64| x.binary_search_by(|(a, _)| a.total_cmp(&value));
            let both = y
                .iter()
                .filter_map(|(b, v)| Some(x.get(of(*b).ok()?)?.1 * v));
            all - both.sum::<f64>()
        }
        Weighting::Linear => {
            let (weight, moment) = (sum(&x, |_| 1.0), sum(&x, |a| a));
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
            // Around a value in the middle, so that nothing large cancels.
            let centre = sum(&x, |a| a) / sum(&x, |_| 1.0);
            let moments = |side: &[(f64, f64)]| {
                [0, 1, 2].map(|power| sum(side, |value| (value - centre).powi(power)))
            };
            let ([n, a, aa], [m, b, bb]) = (moments(&x), moments(&y));
            m * aa + n * bb - 2.0 * a * b
        }
    }
}

fn sum(side: &[(f64, f64)], of: impl Fn(f64) -> f64) -> f64 {
    side.iter().map(|(value, weight)| weight * of(*value)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::ContingencyCells;

    /// A table of counts as two columns.
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

    fn of(counts: &[&[usize]], weighting: Weighting) -> Defined<f64> {
        let [x, y] = columns(counts);
        kappa(&ContingencyCells::new(&x, &y)?.table(), weighting)
    }

    /// Cohen (1960), table 1, in parts of 200: observed 0.70, by chance 0.41, kappa 0.492.
    #[test]
    fn cohens_own_table() {
        let table: [&[usize]; 3] = [&[88, 14, 18], &[10, 40, 10], &[2, 6, 12]];
        let value = of(&table, Weighting::Plain).unwrap();
        assert!(
            (value - (0.70 - 0.41) / (1.0 - 0.41)).abs() < 1e-12,
            "{value}"
        );
    }

    #[test]
    fn one_value_throughout_tells_nothing() {
        assert_eq!(of(&[&[7]], Weighting::Linear), Err(Undefined::NoVariation));
        // One rater alone is constant: exactly chance.
        assert!(of(&[&[3, 4]], Weighting::Quadratic).unwrap().abs() < 1e-12);
    }
}
