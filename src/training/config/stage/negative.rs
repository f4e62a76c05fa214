//! Changes that turn a correct evaluation into a rejected one.

use acem3_experts::Aspect;
use serde::{Deserialize, Serialize};

/// Change that turns a correct evaluation into a rejected one (ACE-M³ §3.4: scores; `HDCEval` §3.3:
/// rationales and references).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Negative {
    /// Swap the scores of the two responses on some criteria
    ScoreSwap,
    /// Raise the score of one response and lower that of the other on one criterion
    ScoreAddition,
    /// Swap the analyses of the two responses on some criteria
    RationaleExchange,
    /// Remove statements about the image from the analyses
    ReferenceRemoval,
}

impl Negative {
    /// All negatives, in the order of the flag's values.
    pub const ALL: [Self; 4] =
        [Self::ScoreSwap, Self::ScoreAddition, Self::RationaleExchange, Self::ReferenceRemoval];

    /// Returns the name in tables.
    pub fn name(self) -> String {
        match self {
            Self::ScoreSwap => "score swap",
            Self::ScoreAddition => "score addition",
            Self::RationaleExchange => "rationale exchange",
            Self::ReferenceRemoval => "reference removal",
        }
        .to_owned()
    }

    /// Returns true if this change can affect an evaluation of the member. Only evaluations of
    /// medical knowledge describe the image.
    pub(crate) fn applies_to(self, member: &str) -> bool {
        self != Self::ReferenceRemoval || member == Aspect::MEDICAL_KNOWLEDGE.key()
    }
}
