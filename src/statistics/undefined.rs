//! Reasons for undefined statistics.

use std::fmt;

use serde::{Serialize, Serializer};

/// A statistic, or the reason why it is undefined.
pub type Defined<T> = Result<T, Undefined>;

/// Reason why a statistic is undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undefined {
    /// There are too few items.
    #[error("{found} {}, expected at least {needed}", items[usize::from(*found != 1)])]
    TooFew {
        /// Name of the items, in the singular and the plural.
        items: [&'static str; 2],
        /// Number found.
        found: usize,
        /// Number needed.
        needed: usize,
    },
    /// All ratings of one column are equal.
    #[error("{0} is the same for every case")]
    Constant(RatingColumn),
    /// All ratings are equal, so chance agreement is complete.
    #[error("all ratings are equal, so agreement is indistinguishable from chance")]
    NoVariation,
    /// A value is infinite or not a number.
    #[error("a value is not a finite number")]
    NotFinite,
    /// The cases have equal mean ratings.
    #[error("the cases have equal mean ratings, so there is no variance between cases")]
    NoVarianceBetween,
    /// The estimate diverges: a model won all comparisons, or the comparisons are not connected.
    #[error("{0}")]
    Unbounded(&'static str),
    /// All bootstrap resamples gave the same value.
    #[error("all bootstrap resamples give the same value, so there is no interval")]
    NoSpread,
    /// Too many bootstrap resamples are undefined.
    #[error("defined in {defined} of {resamples} bootstrap resamples, too few for an interval")]
    Unstable {
        /// Resamples with a value.
        defined: usize,
        /// All resamples.
        resamples: usize,
    },
}

/// One of two rating columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatingColumn {
    /// The first column.
    First,
    /// The second column.
    Second,
}

impl fmt::Display for RatingColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::First => "the first rating",
            Self::Second => "the second rating",
        })
    }
}

impl Undefined {
    /// Formats the reason, with names for the two columns.
    pub fn with_names(&self, sides: [&str; 2]) -> String {
        let [first, second] = sides;
        match self {
            Self::Constant(RatingColumn::First) => format!("{first} is the same for every case"),
            Self::Constant(RatingColumn::Second) => format!("{second} is the same for every case"),
            other => other.to_string(),
        }
    }
}

impl Serialize for Undefined {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns an error if there are fewer than `needed` items. `items`: their name, in the singular
/// and the plural.
pub(super) fn require_at_least(
    needed: usize,
    found: usize,
    items: [&'static str; 2],
) -> Defined<()> {
    if found < needed { Err(Undefined::TooFew { items, found, needed }) } else { Ok(()) }
}

/// Returns an error if the value is not finite.
pub(super) fn require_finite(value: f64) -> Defined<f64> {
    if value.is_finite() { Ok(value) } else { Err(Undefined::NotFinite) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_item_has_a_singular_name() {
        let items = ["case rated by all raters", "cases rated by all raters"];
        let reason = |found| require_at_least(2, found, items).unwrap_err().to_string();
        assert_eq!(reason(1), "1 case rated by all raters, expected at least 2");
        assert_eq!(reason(0), "0 cases rated by all raters, expected at least 2");
    }
}
