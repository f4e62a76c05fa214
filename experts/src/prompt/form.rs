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
    /// All responses of a case in one prompt, each scored by all criteria (AutoMedEval).
    List,
    /// One response per prompt and the reference answer: is the response correct?
    Correctness,
}

impl Form {
    /// All forms.
    pub const ALL: [Self; 4] = [Self::Pair, Self::Single, Self::List, Self::Correctness];

    /// Returns the name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pair => "pair",
            Self::Single => "single",
            Self::List => "list",
            Self::Correctness => "correctness",
        }
    }

    /// Returns the smallest number of responses in a prompt.
    pub fn min_responses(self) -> usize {
        match self {
            Self::Pair | Self::List => 2,
            Self::Single | Self::Correctness => 1,
        }
    }

    /// Returns the largest number of responses in a prompt.
    pub fn max_responses(self) -> usize {
        match self {
            Self::Pair => 2,
            Self::List => 8,
            Self::Single | Self::Correctness => 1,
        }
    }

    /// Returns the presentation orders of `responses` responses, each as the index of the response that
    /// is shown first: the others follow in their order, and those before it come last. A response
    /// alone has one order; with `is_single`, so have the others.
    pub fn rotations(self, responses: usize, is_single: bool) -> std::ops::Range<usize> {
        let orders = match self {
            Self::Pair | Self::List if !is_single => responses,
            _ => 1,
        };
        0..orders
    }

    /// Returns what one verdict is about, in the singular.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Pair => "pair",
            Self::List => "list",
            Self::Single | Self::Correctness => "response",
        }
    }

    /// Returns true for the form whose verdicts are records of a pair of models.
    pub fn is_pair(&self) -> bool {
        *self == Self::Pair
    }
}
