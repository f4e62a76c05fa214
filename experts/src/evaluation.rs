//! What a member writes about two responses: an analysis and a score for each of its criteria.

use serde::{Deserialize, Serialize};

use crate::{Aspect, Criterion, Score};

/// One criterion of one response: the reason, then the score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rating {
    /// The reason, in a sentence or two; empty when only scores were asked for.
    pub analysis: String,
    /// True when the analysis ran into its token budget and was closed by the format.
    pub cut: bool,
    /// The score and the probability of each.
    pub score: Score,
}

/// What one branch expert wrote about a pair.
#[derive(Clone, Debug, PartialEq)]
pub struct BranchEvaluation {
    /// The aspect judged.
    pub aspect: Aspect,
    /// For each criterion of the aspect, in order: the ratings of the first and second response
    /// as they were presented.
    pub ratings: Vec<(Criterion, [Rating; 2])>,
}

impl BranchEvaluation {
    /// The mean score of each response over the aspect's criteria, 0 to 5.
    pub fn means(&self) -> [f64; 2] {
        [0, 1].map(|r| {
            let total: f64 = self
                .ratings
                .iter()
                .map(|(_, pair)| f64::from(pair[r].score.value))
                .sum();
            total / self.ratings.len().max(1) as f64
        })
    }
}
