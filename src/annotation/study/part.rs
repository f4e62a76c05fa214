//! The parts of a study.

use serde::{Deserialize, Serialize};

/// A part of a study. The second begins when the rater's first is final.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The rater rates the responses.
    #[default]
    Responses,
    /// The rater rates the evaluations of judges.
    Evaluations,
}

impl Part {
    /// Both parts, in order.
    pub const ALL: [Self; 2] = [Self::Responses, Self::Evaluations];

    /// Returns true for the first part.
    pub fn is_responses(&self) -> bool {
        *self == Self::Responses
    }

    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Evaluations => "evaluations",
        }
    }
}
