//! Units of comparison: labelled pairs, triples and responses, with the values of judge and raters.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use acem3_conclusion::compare_scores;

use super::consensus::{majority_vote, mean_score};
use crate::data::labels::ScoreTarget;

/// Verdicts joined with labels.
#[derive(Clone, Debug, Default)]
pub struct LabelledUnits {
    /// Names of the raters; other fields refer to raters by index.
    pub raters: Vec<String>,
    /// The labelled units of each score target.
    pub targets: BTreeMap<ScoreTarget, TargetUnits>,
    /// Number of joined labels.
    pub joined: usize,
    /// Number of labels whose case, model or pair is not in the records.
    pub unmatched: usize,
    /// Description of the first such label.
    pub first_unmatched: Option<String>,
    /// True if the labels are preferences without scores.
    pub has_only_preferences: bool,
}

/// The labelled units of one score target.
#[derive(Clone, Debug, Default)]
pub struct TargetUnits {
    /// Labelled pairs.
    pub pairs: Vec<PairUnit>,
    /// Triples of responses to one question. Each of their pairs is in `pairs`.
    pub triples: Vec<TripleUnit>,
    /// Responses with a label score.
    pub responses: Vec<ResponseUnit>,
}

/// A labelled pair of responses.
#[derive(Clone, Debug, PartialEq)]
pub struct PairUnit {
    /// Index of the verdict.
    pub verdict: usize,
    /// The judge's order; `None` if the pair is unscored.
    pub judge: Option<Ordering>,
    /// The ratings of all raters.
    pub ratings: PairRatings,
}

/// The ratings of a pair of responses.
#[derive(Clone, Debug, PartialEq)]
pub enum PairRatings {
    /// The preferred response of each rater.
    Votes(Vec<(u32, Ordering)>),
    /// The scores of each response, by rater.
    Scores([Vec<(u32, f64)>; 2]),
}

/// Three labelled responses. The three orders compare first with second, first with third, and
/// second with third.
#[derive(Clone, Debug, PartialEq)]
pub struct TripleUnit {
    /// Index of the verdict on the first pair.
    pub verdict: usize,
    /// The judge's orders; `None` if one of the pairs is unscored.
    pub judge: Option<[Ordering; 3]>,
    /// The consensus of the raters.
    pub label: [Ordering; 3],
}

/// A labelled response.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseUnit {
    /// Index of the first verdict on the response.
    pub verdict: usize,
    /// Index of the response in the pair of that verdict.
    pub side: usize,
    /// Mean of the judge's scores over all pairs with the response; `None` if all are unscored.
    pub judge: Option<f64>,
    /// The score of each rater.
    pub ratings: Vec<(u32, f64)>,
}

impl PairRatings {
    /// Returns the consensus order of the raters, optionally without one of them: the majority of
    /// the preferences, or the order of the mean scores. Means are over the raters of both
    /// responses if there are any, else over all raters.
    pub fn order(&self, without: Option<u32>) -> Option<Ordering> {
        match self {
            Self::Votes(votes) => majority_vote(votes, without),
            Self::Scores([a, b]) => {
                let means =
                    |a: &[_], b: &[_]| Some([mean_score(a, without)?, mean_score(b, without)?]);
                let common = means(&scores_by_common_raters(a, b), &scores_by_common_raters(b, a));
                common.or_else(|| means(a, b)).map(compare_scores)
            }
        }
    }

    /// Returns the orders of the raters who rated both responses.
    pub fn votes(&self) -> Vec<(u32, Ordering)> {
        match self {
            Self::Votes(votes) => votes.clone(),
            Self::Scores([a, b]) => {
                let vote = |(rater, x): &(u32, f64)| {
                    let (_, y) = b.iter().find(|(other, _)| other == rater)?;
                    Some((*rater, compare_scores([*x, *y])))
                };
                a.iter().filter_map(vote).collect()
            }
        }
    }
}

/// Returns the scores of the raters who also rated the other response.
fn scores_by_common_raters(ratings: &[(u32, f64)], others: &[(u32, f64)]) -> Vec<(u32, f64)> {
    let rated_other = |rater| others.iter().any(|(other, _)| *other == rater);
    let common = ratings.iter().filter(|(rater, _)| rated_other(*rater));
    common.copied().collect()
}

impl ResponseUnit {
    /// Computes the mean score of the raters, optionally without one of them.
    pub fn label(&self, without: Option<u32>) -> Option<f64> {
        mean_score(&self.ratings, without)
    }
}

/// Converts an order to a number: 1 if the first response is better, 0 for a tie, −1 if the second
/// is.
pub(crate) fn order_as_number(order: Ordering) -> f64 {
    f64::from(order as i8)
}
