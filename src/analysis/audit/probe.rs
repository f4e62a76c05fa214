//! The probes of an audit.

use serde::{Deserialize, Serialize};

/// One test of a judge.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Probe {
    /// Preference for the response shown first (from verdicts)
    Position,
    /// Preference for the longer response, compared with the labels (from verdicts)
    Verbosity,
    /// Equal scores in both presentation orders (from verdicts)
    Symmetry,
    /// Ties between byte-identical responses (from verdicts)
    SelfConsistency,
    /// Ties between a response and itself (judges again)
    Identical,
    /// Preference for the same text as a list (judges again)
    Formatting,
    /// Sensitivity to a blank, mismatched or cropped image (judges again)
    Image,
    /// Sensitivity to a mismatched or missing reference, of a judge that sees it (judges again)
    Reference,
    /// Sensitivity to prompt injection, junk and padding in a response (judges again)
    Planted,
    /// Sensitivity to neutral text added to a response (judges again)
    Neutral,
    /// Score drop of a correct response after a medical error (judges again)
    Errors,
}

impl Probe {
    /// All probes, in the order in which they are listed.
    pub const ALL: [Self; 11] = [
        Self::Position,
        Self::Verbosity,
        Self::Symmetry,
        Self::SelfConsistency,
        Self::Identical,
        Self::Formatting,
        Self::Image,
        Self::Reference,
        Self::Planted,
        Self::Neutral,
        Self::Errors,
    ];

    /// Returns the name in files and flags.
    pub fn key(self) -> &'static str {
        match self {
            Self::Position => "position",
            Self::Verbosity => "verbosity",
            Self::Symmetry => "symmetry",
            Self::SelfConsistency => "self-consistency",
            Self::Identical => "identical",
            Self::Formatting => "formatting",
            Self::Image => "image",
            Self::Reference => "reference",
            Self::Planted => "planted",
            Self::Neutral => "neutral",
            Self::Errors => "errors",
        }
    }

    /// Returns true if the probe judges perturbed pairs; the others need existing verdicts only.
    pub fn needs_judging(self) -> bool {
        matches!(
            self,
            Self::Identical
                | Self::Formatting
                | Self::Image
                | Self::Reference
                | Self::Planted
                | Self::Neutral
                | Self::Errors
        )
    }
}
