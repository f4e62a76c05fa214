//! Krippendorff's alpha: agreement of any number of raters, with ratings missing.

use super::correlation::midranks;
use super::ratings::RatedUnits;
use crate::statistics::undefined::{Defined, Undefined, at_least};

/// How far apart two values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistanceMetric {
    /// Different is different.
    Nominal,
    /// By the ratings that lie between them.
    Ordinal,
    /// By the square of their difference.
    Interval,
}

/// Krippendorff's alpha (Krippendorff 2011, "Computing Krippendorff's alpha-reliability"), at most 1;
/// 0 is chance. A unit weighs as its case was drawn; units with one rating do not count.
///
/// An ordinal distance is the squared difference of the mean ranks that two values have among all
/// ratings, which is the sum over the values between them of the original's definition.
///
/// # Errors
///
/// Without a unit rated twice, and where all ratings are equal.
pub fn alpha(units: &RatedUnits, metric: DistanceMetric, weights: &[f64]) -> Defined<f64> {
    let weighed = || {
        let all = units.places.iter().zip(weights);
        all.filter(|(unit, weight)| !unit.is_empty() && **weight > 0.0)
    };
    let mut counts = vec![0.0; units.levels.len()];
    for (unit, weight) in weighed() {
        for &place in unit {
            counts[place as usize] += weight;
        }
    }
    at_least(1, weighed().count(), "cases rated twice")?;
    if counts.iter().filter(|count| **count > 0.0).count() < 2 {
        return Err(Undefined::NoVariation);
    }
    let values = match metric {
        DistanceMetric::Nominal => Vec::new(),
        DistanceMetric::Ordinal => midranks(&counts),
        DistanceMetric::Interval => units.levels.clone(),
    };
    let n: f64 = counts.iter().sum();
    let expected = expected(&counts, &values) / (n - 1.0);
    let observed: f64 = weighed()
        .map(|(unit, weight)| weight * within(unit, &values) / (unit.len() as f64 - 1.0))
        .sum();
    Ok(1.0 - observed / expected)
}

/// The distances of all ordered pairs of a unit's ratings; without values, nominal ones.
fn within(unit: &[u32], values: &[f64]) -> f64 {
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

/// The distances of all ordered pairs of ratings, whatever their unit.
fn expected(counts: &[f64], values: &[f64]) -> f64 {
    let n: f64 = counts.iter().sum();
    if values.is_empty() {
        return n * n - counts.iter().map(|c| c * c).sum::<f64>();
    }
    let counted = || counts.iter().zip(values);
    let mean = counted().map(|(c, v)| c * v).sum::<f64>() / n;
    2.0 * n
        * counted()
            .map(|(c, v)| c * (v - mean) * (v - mean))
            .sum::<f64>()
}
