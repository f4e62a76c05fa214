//! Ratings of units by any number of raters, with missing values.

use super::levels::most_frequent_rating_count;
use crate::statistics::agreement::levels::distinct_levels;
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
    pub(crate) level_indices: Vec<Vec<u32>>,
    /// The most frequent number of ratings per unit.
    pub(crate) ratings_per_unit: usize,
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
    pub(crate) fn new_unchecked(units: Vec<Vec<(u32, f64)>>) -> Self {
        Self { units }
    }

    /// Creates the matrix from rows with one column per rater.
    ///
    /// # Errors
    ///
    /// Same as [`new`](Self::new).
    pub fn from_rows<R: AsRef<[Option<f64>]>>(rows: &[R]) -> Defined<Self> {
        let unit = |row: &R| -> Vec<(u32, f64)> {
            let row = (0..).zip(row.as_ref());
            row.filter_map(|(rater, value)| Some((rater, (*value)?))).collect()
        };
        Self::new(rows.iter().map(unit).collect())
    }

    /// Returns the number of units.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Returns true if there is no unit.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Returns the units, in order.
    pub fn units(&self) -> &[Vec<(u32, f64)>] {
        &self.units
    }

    /// Converts the units to indices of distinct values; units with one rating become empty.
    pub fn to_rated_units(&self) -> RatedUnits {
        let is_rated_twice = |unit: &&Vec<(u32, f64)>| unit.len() > 1;
        let values: Vec<f64> =
            self.units.iter().filter(is_rated_twice).flatten().map(|r| r.1).collect();
        // The constructor checked that all values are finite.
        let (levels, indices) = distinct_levels(&values).unwrap_or_default();
        let mut indices = indices.into_iter();
        let unit = |unit: &Vec<(u32, f64)>| match unit.len() {
            0 | 1 => Vec::new(),
            m => indices.by_ref().take(m).collect(),
        };
        let units: Vec<Vec<u32>> = self.units.iter().map(unit).collect();
        let ratings_per_unit = most_frequent_rating_count(&units, &vec![1.0; units.len()]);
        RatedUnits { levels, level_indices: units, ratings_per_unit }
    }

    /// Converts the units to rows with one value per rater; `None` for a unit that some rater did
    /// not rate.
    pub fn complete_rows(&self) -> Vec<Option<Vec<f64>>> {
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
    /// Counts the units with at least two ratings.
    pub fn count_rated_twice(&self) -> usize {
        self.level_indices.iter().filter(|unit| !unit.is_empty()).count()
    }
}
