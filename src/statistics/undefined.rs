//! Why a statistic has no value.

use std::fmt;

use serde::{Serialize, Serializer};

/// A statistic, or why there is none.
pub type Defined<T> = Result<T, Undefined>;

/// Why a statistic is undefined, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undefined {
    /// There is too little of something.
    #[error("{found} {}, at least {needed} are needed", counted(what, *found))]
    TooFew {
        /// What there is too little of, in the plural.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many are needed.
        needed: usize,
    },
    /// All ratings of one side are equal: nothing goes up or down with them.
    #[error("{0} is the same for every case")]
    Constant(RatingColumn),
    /// All ratings are equal, so that agreement by chance is complete.
    #[error("all ratings are equal: agreement cannot be told from chance")]
    NoVariation,
    /// A value is infinite or not a number.
    #[error("a value is not a finite number")]
    NotFinite,
    /// The cases do not differ, as far as the raters tell.
    #[error("the cases have equal means: there is no variance between them to agree on")]
    NoVarianceBetween,
    /// An estimate that runs away: somebody won against all others, or all are not connected.
    #[error("{0}")]
    Unbounded(&'static str),
    /// Every draw of the bootstrap gave the same value.
    #[error("every bootstrap draw gives the same value: these cases do not tell how sure it is")]
    NoSpread,
    /// Too many draws of the bootstrap had no value.
    #[error("defined in {defined} of {draws} bootstrap draws, too few for an interval")]
    Unstable {
        /// The draws with a value.
        defined: usize,
        /// All draws.
        draws: usize,
    },
}

/// One of two columns that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatingColumn {
    /// The first.
    First,
    /// The second.
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
    /// The reason, with the two sides called by their names.
    pub fn named(&self, sides: [&str; 2]) -> String {
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

/// One of what is named in the plural, where there is one.
fn counted(what: &str, found: usize) -> &str {
    let one = what.strip_suffix('s').filter(|_| found == 1);
    one.unwrap_or(what)
}

/// Fails where there are fewer than `needed`.
pub(super) fn at_least(needed: usize, found: usize, what: &'static str) -> Defined<()> {
    if found < needed {
        Err(Undefined::TooFew {
            what,
            found,
            needed,
        })
    } else {
        Ok(())
    }
}

/// A finite number, or the failure to be one.
pub(super) fn finite(value: f64) -> Defined<f64> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(Undefined::NotFinite)
    }
}
