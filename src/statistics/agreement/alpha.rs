//! Krippendorff's alpha: agreement of any number of raters, with missing ratings.

use super::correlation::midranks;
use super::ratings::RatedUnits;
use crate::statistics::undefined::{Defined, Undefined, require_at_least};

/// Distance between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistanceMetric {
    /// 1 for different values, 0 for equal ones.
    Nominal,
    /// Grows with the number of ratings between the two values.
    Ordinal,
    /// The squared difference.
    Interval,
}

/// Computes Krippendorff's alpha (Krippendorff 2011, "Computing Krippendorff's alpha-reliability"),
/// at most 1; 0 is chance. `weights` has the weight of each unit. Units with one rating do not
/// count.
///
/// An ordinal distance is the squared difference of the mean ranks of two values among all ratings.
/// This equals the sum over the values between them in Krippendorff's definition.
///
/// # Errors
///
/// No unit is rated twice, or all ratings are equal.
pub fn alpha(units: &RatedUnits, metric: DistanceMetric, weights: &[f64]) -> Defined<f64> {
    let rated = || {
        let units = units.level_indices.iter().zip(weights);
        units.filter(|(unit, weight)| !unit.is_empty() && **weight > 0.0)
    };
    let mut counts = vec![0.0; units.levels.len()];
    for (unit, weight) in rated() {
        for &level in unit {
            counts[level as usize] += weight;
        }
    }
    require_at_least(1, rated().count(), ["case rated twice", "cases rated twice"])?;
    if counts.iter().filter(|count| **count > 0.0).count() < 2 {
        return Err(Undefined::NoVariation);
    }
    let values = match metric {
        DistanceMetric::Nominal => Vec::new(),
        DistanceMetric::Ordinal => midranks(&counts),
        DistanceMetric::Interval => units.levels.clone(),
    };
    let n: f64 = counts.iter().sum();
    let expected = total_distance(&counts, &values) / (n - 1.0);
    let observed: f64 = rated()
        .map(|(unit, weight)| weight * distances_within(unit, &values) / (unit.len() as f64 - 1.0))
        .sum();
    Ok(1.0 - observed / expected)
}

/// Sums the distances between the ratings of a unit, over all ordered pairs. If `values` is empty,
/// the distance is nominal: 0 for equal ratings, otherwise 1.
fn distances_within(unit: &[u32], values: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (i, a) in unit.iter().enumerate() {
        for b in unit.iter().take(i) {
            sum += match (values.get(*a as usize), values.get(*b as usize)) {
                (Some(a), Some(b)) => (a - b) * (a - b),
                _ => f64::from(u8::from(a != b)),
            };
        }
    }
    2.0 * sum
}

/// Sums the distances between the ratings of all units, over all ordered pairs.
fn total_distance(counts: &[f64], values: &[f64]) -> f64 {
    let n: f64 = counts.iter().sum();
    if values.is_empty() {
        return n * n - counts.iter().map(|c| c * c).sum::<f64>();
    }
    let weighted_values = || counts.iter().zip(values);
    let mean = weighted_values().map(|(c, v)| c * v).sum::<f64>() / n;
    2.0 * n * weighted_values().map(|(c, v)| c * (v - mean) * (v - mean)).sum::<f64>()
}
