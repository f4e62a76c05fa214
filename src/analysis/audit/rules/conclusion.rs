//! The conclusion that a rule draws.

use crate::analysis::audit::perturbations::Perturbation;
use crate::analysis::audit::result::FindingOutcome;

/// Outcome of a probe and its sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conclusion {
    /// The outcome.
    pub(crate) outcome: FindingOutcome,
    /// The finding in one sentence.
    pub(crate) sentence: String,
    /// The perturbations, the most effective one first; empty if the rule does not rank them.
    pub(crate) ranked: Vec<Perturbation>,
    /// Notes below the table.
    pub(crate) notes: Vec<String>,
}

impl Conclusion {
    /// Creates the conclusion that no bias was found.
    pub(crate) fn sound(sentence: impl Into<String>) -> Self {
        Self::new(FindingOutcome::Sound, sentence)
    }

    /// Creates the conclusion that a bias was found.
    pub(crate) fn biased(sentence: impl Into<String>) -> Self {
        Self::new(FindingOutcome::Biased, sentence)
    }

    /// Creates the conclusion that the cases are too few or do not vary enough.
    pub(crate) fn unclear(sentence: impl Into<String>) -> Self {
        Self::new(FindingOutcome::Unclear, sentence)
    }

    /// Creates a conclusion of any outcome.
    pub(crate) fn new(outcome: FindingOutcome, sentence: impl Into<String>) -> Self {
        Self { outcome, sentence: sentence.into(), ranked: Vec::new(), notes: Vec::new() }
    }
}
