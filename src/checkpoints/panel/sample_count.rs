//! The number of samples of each analysis.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Maximum number of samples.
const MAX_SAMPLES: usize = 64;

/// Number of samples of each analysis, from 1 to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "usize", into = "usize")]
pub struct SampleCount(usize);

/// The number of samples is out of range.
#[derive(Debug, thiserror::Error)]
#[error("expected a number from 1 to {MAX_SAMPLES}")]
pub struct SampleCountError;

impl SampleCount {
    /// One sample: the most probable analysis.
    pub const ONE: Self = Self(1);

    /// Returns the number.
    pub fn get(self) -> usize {
        self.0
    }

    /// Returns true for one sample.
    pub fn is_one(&self) -> bool {
        *self == Self::ONE
    }
}

impl Default for SampleCount {
    fn default() -> Self {
        Self::ONE
    }
}

impl TryFrom<usize> for SampleCount {
    type Error = SampleCountError;

    fn try_from(count: usize) -> Result<Self, SampleCountError> {
        if (1..=MAX_SAMPLES).contains(&count) { Ok(Self(count)) } else { Err(SampleCountError) }
    }
}

impl From<SampleCount> for usize {
    fn from(count: SampleCount) -> Self {
        count.0
    }
}

impl FromStr for SampleCount {
    type Err = SampleCountError;

    fn from_str(text: &str) -> Result<Self, SampleCountError> {
        text.parse::<usize>().map_err(|_| SampleCountError)?.try_into()
    }
}

impl fmt::Display for SampleCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_in_range_are_counts() {
        for text in ["0", "65", "-1", "1.5", "", "many"] {
            let error = text.parse::<SampleCount>().unwrap_err().to_string();
            assert_eq!(error, "expected a number from 1 to 64");
            assert!(serde_json::from_str::<SampleCount>(text).is_err());
        }
        for count in [1, 8, 64] {
            let parsed: SampleCount = count.to_string().parse().unwrap();
            assert_eq!((parsed.get(), parsed.is_one()), (count, count == 1));
        }
    }
}
