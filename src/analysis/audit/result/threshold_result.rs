//! Result of a threshold.

use serde::{Deserialize, Serialize};

/// Result of a threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThresholdResult {
    /// The flag of the threshold.
    pub flag: String,
    /// The limit, in the printed unit.
    pub limit: f64,
    /// The measured value, in the same unit; `None` if it could not be measured.
    pub value: Option<f64>,
    /// True if the value does not meet the limit, or nothing could be measured.
    pub failed: bool,
    /// The result in one sentence.
    #[serde(rename = "words")]
    pub summary: String,
}

impl ThresholdResult {
    /// Returns the result as a line of a list above the tables.
    pub fn to_line(&self) -> String {
        let prefix = if self.failed { "FAILED: " } else { "" };
        format!("- {prefix}{}", self.summary)
    }
}
