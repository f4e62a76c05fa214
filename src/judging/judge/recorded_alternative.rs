//! The ratings that an average is made of, in a record.

use acem3_experts::RatingAlternative;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rounding::round_to_4_decimals;

/// One of the ratings that were averaged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedAlternative {
    /// Its probability among the alternatives.
    #[schemars(range(min = 0, max = 1))]
    pub weight: f64,
    /// Its analysis.
    pub analysis: String,
    /// Its score.
    #[schemars(range(min = 0, max = 5))]
    pub score: u8,
    /// Its expected score.
    #[schemars(range(min = 0, max = 5))]
    pub expected: f64,
}

impl From<&RatingAlternative> for RecordedAlternative {
    fn from(alternative: &RatingAlternative) -> Self {
        let RatingAlternative { weight, analysis, value, expected } = alternative.clone();
        let [weight, expected] = [weight, expected].map(round_to_4_decimals);
        Self { weight, analysis, score: value, expected }
    }
}
