//! Units of measures, and how values are printed in them.

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

    /// Formats an end of an interval for sentences.
    pub(super) fn format_bound(self, value: f64) -> String {
        match self {
            Self::Proportion => format!("{:.0}", 100.0 * value),
            Self::ProportionDifference => format!("{:+.0}", 100.0 * value),
            Self::Points | Self::LogOdds => self.format_value(value),
        }
    }

    /// The unit after a value in tables.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Proportion => " %",
            Self::ProportionDifference => " pp",
            Self::Points | Self::LogOdds => "",
        }
    }

    /// The unit after a value in sentences.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Proportion => " %",
            Self::ProportionDifference => " percentage points",
            Self::Points => " points",
            Self::LogOdds => "",
        }
    }

    /// The unit of a difference of two values in this unit.
    #[must_use]
    pub fn of_difference(self) -> Self {
        match self {
            Self::Proportion => Self::ProportionDifference,
            unit => unit,
        }
    }
}
