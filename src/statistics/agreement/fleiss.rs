//! Fleiss' kappa: agreement of several raters in categories.

use super::levels::raters;

use super::ratings::RatedUnits;
use crate::statistics::undefined::{Defined, Undefined, at_least};

/// Fleiss' kappa (Fleiss 1971), at most 1; 0 is chance. It needs the same number of ratings for every
/// unit. The function uses the most frequent number of two or more and leaves out units with other numbers.
///
/// # Errors
///
/// No unit is rated twice, or all ratings are equal.
pub fn fleiss(units: &RatedUnits, weights: &[f64]) -> Defined<f64> {
    let m = units.raters;
    at_least(2, m, "ratings of each case")?;
    let mut counts = vec![0.0; units.levels.len()];
    let (mut agreement, mut n) = (0.0, 0.0);
    for (unit, weight) in units.places.iter().zip(weights) {
        if unit.len() != m || *weight <= 0.0 {
            continue;
        }
        for &place in unit {
            counts[place as usize] += weight;
        }
        agreement += weight * agreeing(unit);
        n += weight;
    }
    at_least(1, n as usize, "cases rated equally often")?;
    if counts.iter().filter(|count| **count > 0.0).count() < 2 {
        return Err(Undefined::NoVariation);
    }
    let all = n * m as f64;
    let chance: f64 = counts.iter().map(|count| (count / all).powi(2)).sum();
    Ok((agreement / n - chance) / (1.0 - chance))
}

impl RatedUnits {
    /// The same units, each representing a number of cases. The required number of ratings is the most frequent one
    /// among these cases.
    #[must_use]
    pub fn of_cases(mut self, cases: &[f64]) -> Self {
        self.raters = raters(&self.places, cases);
        self
    }

    /// Whether a unit has the required number of ratings for [`fleiss`].
    pub fn is_even(&self, unit: usize) -> bool {
        let found = self.places.get(unit).map_or(0, Vec::len);
        found > 1 && found == self.raters
    }
}

/// Proportion of agreeing rating pairs of a unit.
fn agreeing(unit: &[u32]) -> f64 {
    let pairs = (unit.len() * (unit.len() - 1) / 2) as f64;
    let equal = |(i, a): (usize, &u32)| unit.iter().take(i).filter(|b| *b == a).count();
    unit.iter().enumerate().map(equal).sum::<usize>() as f64 / pairs
}
