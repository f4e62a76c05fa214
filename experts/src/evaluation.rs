//! Evaluation of responses by a branch expert: an analysis and a score for each criterion.

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
    /// Questions that the member asked in the analysis, in order, with the evidence that it read.
    /// The analysis does not contain them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lookups: Vec<Lookup>,
    /// The different ratings that this one is the average of, with several samples; empty if all
    /// samples have this rating.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<RatingAlternative>,
}

/// One of the ratings that an average is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatingAlternative {
    /// Its probability among the alternatives.
    pub weight: f64,
    /// Its analysis.
    pub analysis: String,
    /// Its score.
    pub value: u8,
    /// Mean of its score distribution.
    pub expected: f64,
}

impl Rating {
    /// Creates a rating with a complete analysis, without questions and alternatives.
    pub fn new(analysis: String, score: Score) -> Self {
        Self { analysis, cut: false, score, lookups: Vec::new(), alternatives: Vec::new() }
    }

    /// Returns the score; with alternatives, the weighted mean of their scores.
    pub fn mean_value(&self) -> f64 {
        if self.alternatives.is_empty() {
            return f64::from(self.score.value);
        }
        self.alternatives.iter().map(|a| a.weight * f64::from(a.value)).sum()
    }

    /// Returns the standard deviation of the expected scores of the alternatives; 0 without
    /// alternatives.
    pub fn spread_between(&self) -> f64 {
        let mean: f64 = self.alternatives.iter().map(|a| a.weight * a.expected).sum();
        let squares = self.alternatives.iter().map(|a| a.weight * (a.expected - mean).powi(2));
        squares.sum::<f64>().sqrt()
    }
}

/// A question that a member asked, and the passages that it read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookup {
    /// The question.
    pub question: String,
    /// Ids of the passages, best first; empty if none was found.
    pub passages: Vec<String>,
    /// Number of characters of the analysis before the question.
    #[serde(default)]
    pub position: usize,
}

/// Evaluation of one or more responses by one branch expert.
#[derive(Clone, Debug, PartialEq)]
pub struct BranchEvaluation {
    /// Aspect of the expert.
    pub aspect: Aspect,
    /// For each criterion of the aspect, in order: the ratings of the responses. An expert's
    /// evaluation is in presentation order; in an `OrderVerdict`, they have the order of the record.
    pub ratings: Vec<(Criterion, Vec<Rating>)>,
}

impl BranchEvaluation {
    /// Returns analysis and score of each rating in the order of the evaluation's text: all criteria of
    /// the first response, then those of the next.
    pub fn texts_in_order(&self, responses: usize) -> Vec<(String, u8)> {
        let of_response =
            |response: usize| self.ratings.iter().filter_map(move |(_, all)| all.get(response));
        let ratings = (0..responses).flat_map(of_response);
        ratings.map(|rating| (rating.analysis.clone(), rating.score.value)).collect()
    }

    /// Returns the mean score of each response over the aspect's criteria, 0 to 5.
    pub fn means(&self) -> Vec<f64> {
        let responses = self.ratings.first().map_or(0, |(_, ratings)| ratings.len());
        let mean = |response: usize| {
            let scores = self.ratings.iter().filter_map(|(_, ratings)| ratings.get(response));
            let total: f64 = scores.map(Rating::mean_value).sum();
            total / self.ratings.len().max(1) as f64
        };
        (0..responses).map(mean).collect()
    }
}
