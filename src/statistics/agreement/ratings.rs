//! Ratings of units by any number of raters, with missing values.

use super::levels::raters;
use crate::statistics::agreement::levels::levels;
use crate::statistics::undefined::{Defined, Undefined};

/// For each unit: its raters and their values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RatingMatrix {
    units: Vec<Vec<(u32, f64)>>,
}

/// Units with at least two ratings, as indices of distinct values.
#[derive(Clone, Debug)]
pub struct RatedUnits {
    /// The distinct values, ascending.
    pub(crate) levels: Vec<f64>,
    /// For each unit, the indices of its values; empty if it has fewer than two.
    pub(crate) places: Vec<Vec<u32>>,
    /// The most frequent number of ratings per unit.
    pub(crate) raters: usize,
}

impl RatingMatrix {
    /// Creates the matrix from units, each with rater numbers and values.
    ///
    /// # Errors
    ///
    /// A value is not finite.
    pub fn new(units: Vec<Vec<(u32, f64)>>) -> Defined<Self> {
        if units.iter().flatten().any(|(_, value)| !value.is_finite()) {
            return Err(Undefined::NotFinite);
        }
        Ok(Self { units })
    }

    /// Creates the matrix from units with finite values.
    pub(crate) fn of_finite(units: Vec<Vec<(u32, f64)>>) -> Self {
        Self { units }
    }

    /// Creates the matrix from rows with one column per rater.
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

    /// Number of units.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether there is no unit.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// The units, in order.
    pub fn units(&self) -> &[Vec<(u32, f64)>] {
        &self.units
    }

    /// The units as indices of distinct values; units with one rating become empty.
    pub fn paired(&self) -> RatedUnits {
        let paired = |unit: &&Vec<(u32, f64)>| unit.len() > 1;
        let values: Vec<f64> = self
            .units
            .iter()
            .filter(paired)
            .flatten()
            .map(|r| r.1)
            .collect();
        // The constructor checked that all values are finite.
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

    /// The units as rows with one value per rater; `None` for units that a rater did not rate.
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
    /// Number of units with at least two ratings.
    pub fn paired(&self) -> usize {
        self.places.iter().filter(|unit| !unit.is_empty()).count()
    }
}
