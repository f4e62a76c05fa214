//! Units of measures and formats of their values.

use serde::{Deserialize, Serialize};

/// Unit of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasureUnit {
    /// A proportion, 0 to 1; printed in percent.
    #[serde(rename = "share")]
    Proportion,
    /// A difference of two proportions; printed in percentage points.
    #[serde(rename = "share_difference")]
    ProportionDifference,
    /// Points of a score from 0 to 5.
    Points,
    /// A log-odds ratio.
    LogOdds,
}

impl MeasureUnit {
    /// Formats a value for tables, without the unit.
    pub fn format_value(self, value: f64) -> String {
        match self {
            Self::Proportion => format!("{:.1}", 100.0 * value),
            Self::ProportionDifference => format!("{:+.1}", 100.0 * value),
            // A value that rounds to zero has no sign.
            Self::Points | Self::LogOdds => format!("{:.2}", (value * 100.0).round() / 100.0 + 0.0),
        }
    }

    /// Formats a bound of an interval for sentences.
    pub(super) fn format_bound(self, value: f64) -> String {
        match self {
            Self::Proportion => format!("{:.0}", 100.0 * value),
            Self::ProportionDifference => format!("{:+.0}", 100.0 * value),
            Self::Points | Self::LogOdds => self.format_value(value),
        }
    }

    /// Returns the unit after a value in tables.
    pub fn table_suffix(self) -> &'static str {
        match self {
            Self::Proportion => " %",
            Self::ProportionDifference => " pp",
            Self::Points | Self::LogOdds => "",
        }
    }

    /// Returns the unit after a value in sentences.
    pub(crate) fn sentence_suffix(self) -> &'static str {
        match self {
            Self::Proportion => " %",
            Self::ProportionDifference => " percentage points",
            Self::Points => " points",
            Self::LogOdds => "",
        }
    }

    /// Returns the unit of a difference of two values in this unit.
    #[must_use]
    pub fn difference_unit(self) -> Self {
        match self {
            Self::Proportion => Self::ProportionDifference,
            unit => unit,
        }
    }
}
