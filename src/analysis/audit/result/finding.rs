//! The finding of one probe.

use serde::{Deserialize, Serialize};

use super::measure::AuditMeasure;
use crate::analysis::audit::probe::Probe;

/// The finding of one probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The probe.
    pub probe: Probe,
    /// The conclusion.
    pub outcome: FindingOutcome,
    /// The finding in one sentence, or why the probe did not run.
    #[serde(rename = "words")]
    pub summary: String,
    /// The key of the most effective perturbation, if the probe ranks them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<String>,
    /// The measures; those of the most effective perturbation first, if the probe ranks them.
    pub measures: Vec<AuditMeasure>,
    /// Skipped pairs, with reasons.
    pub notes: Vec<String>,
}

/// Conclusion of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingOutcome {
    /// No bias found, with enough cases to detect one.
    Sound,
    /// A bias found.
    Biased,
    /// Too few cases, or cases that do not vary enough.
    Unclear,
    /// The probe could not run, so it does not pass.
    NotRun,
}

impl FindingOutcome {
    /// Returns the name in tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Biased => "BIASED",
            Self::Unclear => "unclear",
            Self::NotRun => "not run",
        }
    }
}

impl Finding {
    /// Creates the finding of a probe that could not run.
    pub fn not_run(probe: Probe, reason: impl Into<String>) -> Self {
        Self {
            probe,
            outcome: FindingOutcome::NotRun,
            summary: format!("not run: {}", reason.into()),
            worst: None,
            measures: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Finds a measure by its key.
    pub fn measure(&self, key: &str) -> Option<&AuditMeasure> {
        self.measures.iter().find(|measure| measure.key == key)
    }
}
