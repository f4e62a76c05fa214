//! Units of measures, and how values are printed in them.

use serde::{Deserialize, Serialize};

/// Unit of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasureUnit {
    /// A proportion, 0 to 1; printed in percent.
    Share,
    /// A difference of two proportions; printed in percentage points.
    ShareDifference,
    /// Points of a score from 0 to 5.
    Points,
    /// A log-odds ratio.
    LogOdds,
}

impl MeasureUnit {
    /// Formats a value for tables, without the unit.
    pub fn shown(self, value: f64) -> String {
        match self {
            Self::Share => format!("{:.1}", 100.0 * value),
            Self::ShareDifference => format!("{:+.1}", 100.0 * value),
            // A value that rounds to zero has no sign.
            Self::Points | Self::LogOdds => format!("{:.2}", (value * 100.0).round() / 100.0 + 0.0),
        }
    }

    /// Formats an end of an interval for sentences.
    pub(super) fn format_bound(self, value: f64) -> String {
        match self {
            Self::Share => format!("{:.0}", 100.0 * value),
            Self::ShareDifference => format!("{:+.0}", 100.0 * value),
            Self::Points | Self::LogOdds => self.shown(value),
        }
    }

    /// The unit after a value in tables.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Share => " %",
            Self::ShareDifference => " pp",
            Self::Points | Self::LogOdds => "",
        }
    }

    /// The unit after a value in sentences.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Share => " %",
            Self::ShareDifference => " percentage points",
            Self::Points => " points",
            Self::LogOdds => "",
        }
    }

    /// The unit of a difference of two values in this unit.
    pub fn of_difference(self) -> Self {
        match self {
            Self::Share => Self::ShareDifference,
            unit => unit,
        }
    }
}
