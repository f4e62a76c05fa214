//! Distinct values of ratings, and the most frequent number of ratings.

use std::collections::BTreeMap;

use crate::statistics::undefined::{Defined, Undefined};

/// Returns the distinct values, ascending, and the index of each value among them.
pub(crate) fn distinct_levels(values: &[f64]) -> Defined<(Vec<f64>, Vec<u32>)> {
    if values.iter().any(|v| !v.is_finite()) {
        return Err(Undefined::NotFinite);
    }
    // Adding zero maps -0.0 to 0.0.
    let mut distinct: Vec<f64> = values.iter().map(|v| v + 0.0).collect();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    let index = |v: &f64| distinct.partition_point(|d| d < v) as u32;
    let indices = values.iter().map(index).collect();
    Ok((distinct, indices))
}

/// Returns the most frequent number of ratings of a unit, at least two. Of equally frequent
/// numbers, it returns the largest.
pub(crate) fn most_frequent_rating_count(units: &[Vec<u32>], cases: &[f64]) -> usize {
    let mut frequency: BTreeMap<usize, f64> = BTreeMap::new();
    for (unit, n) in units.iter().zip(cases).filter(|(unit, _)| unit.len() > 1) {
        *frequency.entry(unit.len()).or_default() += n;
    }
    let most_frequent = frequency
        .into_iter()
        .max_by(|(a, cases_a), (b, cases_b)| cases_a.total_cmp(cases_b).then(a.cmp(b)));
    most_frequent.map_or(0, |(ratings, _)| ratings)
}
