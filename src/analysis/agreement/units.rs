//! Units of comparison: pairs, triples and responses, with the values of judge and raters.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use acem3_conclusion::compare;

use super::consensus::{majority, mean};
use crate::data::labels::ScoreTarget;

/// Verdicts joined with labels.
#[derive(Clone, Debug, Default)]
pub struct LabelledUnits {
    /// The raters; their index is their number.
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
    pub preferences: bool,
}

/// The labelled units of one score target.
#[derive(Clone, Debug, Default)]
pub struct TargetUnits {
    /// Pairs with an order.
    pub pairs: Vec<PairUnit>,
    /// Triples of responses to one question. Each of their pairs is in `pairs`.
    pub triples: Vec<TripleUnit>,
    /// Responses with a score.
    pub responses: Vec<ResponseUnit>,
}

/// A labelled pair of responses.
#[derive(Clone, Debug, PartialEq)]
pub struct PairUnit {
    /// Index of the verdict.
    pub verdict: usize,
    /// The judge's order; `None` if the pair is unscored.
    pub judge: Option<Ordering>,
    /// The ratings.
    pub rated: PairRatings,
}

/// The ratings of a pair of responses.
#[derive(Clone, Debug, PartialEq)]
pub enum PairRatings {
    /// The preferred response of each rater.
    Votes(Vec<(u32, Ordering)>),
    /// The scores of each response, by rater.
    Scores([Vec<(u32, f64)>; 2]),
}

/// Three labelled responses. Orders are those of first and second, first and third, second and third.
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
    /// Index of the first verdict on it.
    pub verdict: usize,
    /// Index of the response in the pair of that verdict.
    pub side: usize,
    /// Mean of the judge's scores over all pairs with it; `None` if all are unscored.
    pub judge: Option<f64>,
    /// The score of each rater.
    pub ratings: Vec<(u32, f64)>,
}

impl PairRatings {
    /// The consensus order of the raters, optionally without one of them: the majority of the preferences,
    /// or the order of the mean scores. Means are over the raters of both responses if there are any, else
    /// over all raters.
    pub fn order(&self, without: Option<u32>) -> Option<Ordering> {
        match self {
            Self::Votes(votes) => majority(votes, without),
            Self::Scores([a, b]) => {
                let means = |a: &[_], b: &[_]| Some([mean(a, without)?, mean(b, without)?]);
                let common = means(
                    &scores_by_common_raters(a, b),
                    &scores_by_common_raters(b, a),
                );
                common.or_else(|| means(a, b)).map(compare)
            }
        }
    }

    /// The order of each rater of both responses.
    pub fn votes(&self) -> Vec<(u32, Ordering)> {
        match self {
            Self::Votes(votes) => votes.clone(),
            Self::Scores([a, b]) => {
                let vote = |(rater, x): &(u32, f64)| {
                    let (_, y) = b.iter().find(|(other, _)| other == rater)?;
                    Some((*rater, compare([*x, *y])))
                };
                a.iter().filter_map(vote).collect()
            }
        }
    }
}

/// The scores of those raters who also rated the other response.
fn scores_by_common_raters(ratings: &[(u32, f64)], others: &[(u32, f64)]) -> Vec<(u32, f64)> {
    let rated = |rater| others.iter().any(|(other, _)| *other == rater);
    let kept = ratings.iter().filter(|(rater, _)| rated(*rater));
    kept.copied().collect()
}

impl ResponseUnit {
    /// Mean score of the raters, optionally without one of them.
    pub fn label(&self, without: Option<u32>) -> Option<f64> {
        mean(&self.ratings, without)
    }
}

/// Converts an order to a number: 1 if the first response is better, 0 for a tie, −1 if the second is.
pub(super) fn order_as_number(order: Ordering) -> f64 {
    f64::from(order as i8)
}
