//! Fleiss' kappa: agreement of several raters in categories.

use super::levels::most_frequent_rating_count;

use super::ratings::RatedUnits;
use crate::statistics::undefined::{Defined, Undefined, require_at_least};

/// Computes Fleiss' kappa (Fleiss 1971), at most 1; 0 is chance. Kappa needs the same number of
/// ratings for every unit, so only units with the most frequent number of ratings (at least two)
/// are included.
///
/// # Errors
///
/// No unit is rated twice, or all ratings are equal.
pub fn fleiss(units: &RatedUnits, weights: &[f64]) -> Defined<f64> {
    let m = units.ratings_per_unit;
    require_at_least(2, m, ["rating of each case", "ratings of each case"])?;
    let mut counts = vec![0.0; units.levels.len()];
    let (mut agreement, mut n) = (0.0, 0.0);
    for (unit, weight) in units.level_indices.iter().zip(weights) {
        if unit.len() != m || *weight <= 0.0 {
            continue;
        }
        for &level in unit {
            counts[level as usize] += weight;
        }
        agreement += weight * agreement_within(unit);
        n += weight;
    }
    require_at_least(1, n as usize, ["case rated equally often", "cases rated equally often"])?;
    if counts.iter().filter(|count| **count > 0.0).count() < 2 {
        return Err(Undefined::NoVariation);
    }
    let all = n * m as f64;
    let chance: f64 = counts.iter().map(|count| (count / all).powi(2)).sum();
    Ok((agreement / n - chance) / (1.0 - chance))
}

impl RatedUnits {
    /// Sets the number of cases that each unit represents. The number of ratings that [`fleiss`]
    /// requires becomes the most frequent one among these cases.
    #[must_use]
    pub fn with_case_counts(mut self, cases: &[f64]) -> Self {
        self.ratings_per_unit = most_frequent_rating_count(&self.level_indices, cases);
        self
    }

    /// Returns true if a unit has the number of ratings that [`fleiss`] requires.
    pub fn has_required_ratings(&self, unit: usize) -> bool {
        let ratings = self.level_indices.get(unit).map_or(0, Vec::len);
        ratings > 1 && ratings == self.ratings_per_unit
    }
}

/// Computes the proportion of agreeing rating pairs of a unit.
fn agreement_within(unit: &[u32]) -> f64 {
    let pairs = (unit.len() * (unit.len() - 1) / 2) as f64;
    let equal = |(i, a): (usize, &u32)| unit.iter().take(i).filter(|b| *b == a).count();
    unit.iter().enumerate().map(equal).sum::<usize>() as f64 / pairs
}
