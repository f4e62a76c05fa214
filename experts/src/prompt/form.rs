//! Forms of judging: which question a verdict answers about the responses of a case.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Form of judging. It decides how many responses a prompt shows and what the members write.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Two responses per prompt, each scored by all criteria (ACE-M³ §3).
    #[default]
    Pair,
    /// One response per prompt, scored by all criteria (HDCEval, single evaluation).
    Single,
    /// One response per prompt and the reference answer: is the response correct?
    Correctness,
}

impl Form {
    /// All forms.
    pub const ALL: [Self; 3] = [Self::Pair, Self::Single, Self::Correctness];

    /// Returns the name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pair => "pair",
            Self::Single => "single",
            Self::Correctness => "correctness",
        }
    }

    /// Returns the number of responses in a prompt.
    pub fn responses(self) -> usize {
        match self {
            Self::Pair => 2,
            Self::Single | Self::Correctness => 1,
        }
    }

    /// Returns true for the form whose verdicts are records of a pair of models.
    pub fn is_pair(&self) -> bool {
        *self == Self::Pair
    }
}
