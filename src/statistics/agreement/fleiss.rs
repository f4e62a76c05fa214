//! Fleiss' kappa: agreement of several raters in categories.

use std::collections::BTreeMap;

use super::ratings::RatedUnits;
use crate::statistics::undefined::{Defined, Undefined, at_least};

/// Fleiss' kappa (Fleiss 1971), at most 1; 0 is chance. It wants the same number of ratings for every
/// unit: the most frequent number of two or more is taken, and units with another do not count.
///
/// # Errors
///
/// Without a unit rated twice, and where all ratings are equal.
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
    /// The same units, each standing for so many cases: what most of *these* are rated is asked of all.
    #[must_use]
    pub fn of_cases(mut self, cases: &[f64]) -> Self {
        self.raters = raters(&self.places, cases);
        self
    }

    /// Whether a unit has as many ratings as most, so that it counts in [`fleiss`].
    pub fn is_even(&self, unit: usize) -> bool {
        let found = self.places.get(unit).map_or(0, Vec::len);
        found > 1 && found == self.raters
    }
}

/// How many ratings most cases have: two or more, and of equally frequent numbers the largest.
pub(crate) fn raters(units: &[Vec<u32>], cases: &[f64]) -> usize {
    let mut frequency: BTreeMap<usize, f64> = BTreeMap::new();
    for (unit, n) in units.iter().zip(cases).filter(|(unit, _)| unit.len() > 1) {
        *frequency.entry(unit.len()).or_default() += n;
    }
    let most = frequency.into_iter();
    let most = most.max_by(|(m, n), (other, more)| n.total_cmp(more).then(m.cmp(other)));
    most.map_or(0, |(m, _)| m)
}

/// The part of the pairs of a unit's ratings that agree.
fn agreeing(unit: &[u32]) -> f64 {
    let pairs = (unit.len() * (unit.len() - 1) / 2) as f64;
    let equal = |(i, a): (usize, &u32)| unit.iter().take(i).filter(|b| *b == a).count();
    unit.iter().enumerate().map(equal).sum::<usize>() as f64 / pairs
}
