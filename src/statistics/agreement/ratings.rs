//! Ratings of things by any number of raters, some of which may be missing.

use super::fleiss::raters;
use crate::statistics::agreement::contingency::levels;
use crate::statistics::undefined::{Defined, Undefined};

/// For each thing rated (a unit): who rated it, and how.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RatingMatrix {
    units: Vec<Vec<(u32, f64)>>,
}

/// The units rated at least twice, ready to be counted.
#[derive(Clone, Debug)]
pub struct RatedUnits {
    /// The distinct values, ascending.
    pub(crate) levels: Vec<f64>,
    /// For each unit, the places of its values among them; empty where it has fewer than two.
    pub(crate) places: Vec<Vec<u32>>,
    /// How many ratings most of them have.
    pub(crate) raters: usize,
}

impl RatingMatrix {
    /// Units, each with its raters (numbers of the caller's choice) and their values.
    ///
    /// # Errors
    ///
    /// Where a value is not finite.
    pub fn new(units: Vec<Vec<(u32, f64)>>) -> Defined<Self> {
        if units.iter().flatten().any(|(_, value)| !value.is_finite()) {
            return Err(Undefined::NotFinite);
        }
        Ok(Self { units })
    }

    /// Units whose values are known to be finite.
    pub(crate) fn of_finite(units: Vec<Vec<(u32, f64)>>) -> Self {
        Self { units }
    }

    /// Rows of ratings, a column for each rater.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn of_rows<R: AsRef<[Option<f64>]>>(rows: &[R]) -> Defined<Self> {
        let unit = |row: &R| -> Vec<(u32, f64)> {
            let row = (0..).zip(row.as_ref());
            row.filter_map(|(rater, value)| Some((rater, (*value)?)))
                .collect()
        };
        Self::new(rows.iter().map(unit).collect())
    }

    /// How many units there are.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// The units, in order.
    pub fn units(&self) -> &[Vec<(u32, f64)>] {
        &self.units
    }

    /// The units as places among the distinct values, those rated once left without any.
    pub fn paired(&self) -> RatedUnits {
        let paired = |unit: &&Vec<(u32, f64)>| unit.len() > 1;
        let values: Vec<f64> = self
            .units
            .iter()
            .filter(paired)
            .flatten()
            .map(|r| r.1)
            .collect();
        // All are finite: they were looked at when the ratings were made.
        let (levels, places) = levels(&values).unwrap_or_default();
        let mut places = places.into_iter();
        let unit = |unit: &Vec<(u32, f64)>| match unit.len() {
            0 | 1 => Vec::new(),
            m => places.by_ref().take(m).collect(),
        };
        let units: Vec<Vec<u32>> = self.units.iter().map(unit).collect();
        let raters = raters(&units, &vec![1.0; units.len()]);
        RatedUnits {
            levels,
            places: units,
            raters,
        }
    }

    /// The units as rows of values, by rater, of those that all raters rated; the others are `None`.
    pub fn complete(&self) -> Vec<Option<Vec<f64>>> {
        let mut raters: Vec<u32> = self.units.iter().flatten().map(|r| r.0).collect();
        raters.sort_unstable();
        raters.dedup();
        let value =
            |unit: &[(u32, f64)], rater: u32| unit.iter().find(|r| r.0 == rater).map(|r| r.1);
        let row = |unit: &Vec<(u32, f64)>| -> Option<Vec<f64>> {
            let row: Option<Vec<f64>> = raters.iter().map(|r| value(unit, *r)).collect();
            row.filter(|row| !row.is_empty())
        };
        self.units.iter().map(row).collect()
    }
}

impl RatedUnits {
    /// How many units are rated at least twice.
    pub fn paired(&self) -> usize {
        self.places.iter().filter(|unit| !unit.is_empty()).count()
    }
}
