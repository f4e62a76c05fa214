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
    pub words: String,
    /// The measures.
    pub measures: Vec<AuditMeasure>,
    /// Skipped pairs, with reasons.
    pub notes: Vec<String>,
}

/// Conclusion of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingOutcome {
    /// No bias, with enough cases to have found one.
    Sound,
    /// A bias.
    Biased,
    /// Too few cases, or cases that do not vary enough.
    Unclear,
    /// The probe could not run; a probe that did not run has not passed.
    NotRun,
}

impl FindingOutcome {
    /// Name in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Biased => "BIASED",
            Self::Unclear => "unclear",
            Self::NotRun => "not run",
        }
    }
}

impl Finding {
    /// The finding of a probe that could not run.
    pub fn not_run(probe: Probe, why: impl Into<String>) -> Self {
        Self {
            probe,
            outcome: FindingOutcome::NotRun,
            words: format!("not run: {}", why.into()),
            measures: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Finds a measure by its key.
    pub fn measure(&self, key: &str) -> Option<&AuditMeasure> {
        self.measures.iter().find(|measure| measure.key == key)
    }
}
