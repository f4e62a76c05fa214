//! Evaluation of a pair by a branch expert: an analysis and a score for each criterion.

use serde::{Deserialize, Serialize};

use crate::{Aspect, Criterion, Score};

/// Analysis and score of one response on one criterion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rating {
    /// Reason for the score, in one or two sentences. Empty if only scores are generated.
    pub analysis: String,
    /// True if the analysis was truncated at its token budget.
    pub cut: bool,
    /// Score with its probabilities.
    pub score: Score,
}

/// Evaluation of a pair by one branch expert.
#[derive(Clone, Debug, PartialEq)]
pub struct BranchEvaluation {
    /// Aspect of the expert.
    pub aspect: Aspect,
    /// For each criterion of the aspect, in order: the ratings of the two responses. An expert's
    /// evaluation is in presentation order; in an `OrderVerdict`, they have the pair's order.
    pub ratings: Vec<(Criterion, [Rating; 2])>,
}

impl BranchEvaluation {
    /// Returns the mean score of each response over the aspect's criteria, 0 to 5.
    pub fn means(&self) -> [f64; 2] {
        [0, 1].map(|response| {
            let total: f64 =
                self.ratings.iter().map(|(_, pair)| f64::from(pair[response].score.value)).sum();
            total / self.ratings.len().max(1) as f64
        })
    }
}
