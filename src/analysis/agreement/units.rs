//! What is compared: pairs, triples and responses, each with what the judge and the raters say.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use acem3_conclusion::compare;

use super::consensus::{majority, mean};
use crate::data::labels::ScoreTarget;

/// Verdicts and labels, joined.
#[derive(Clone, Debug, Default)]
pub struct LabelledUnits {
    /// The raters, by number.
    pub raters: Vec<String>,
    /// What is labelled, by target.
    pub targets: BTreeMap<ScoreTarget, TargetUnits>,
    /// Labels that were joined.
    pub joined: usize,
    /// Labels of cases, models or pairs that the records do not have.
    pub unmatched: usize,
    /// The first of them, in words.
    pub first_unmatched: Option<String>,
    /// Whether the labels hold preferences without scores.
    pub preferences: bool,
}

/// What is labelled on one target.
#[derive(Clone, Debug, Default)]
pub struct TargetUnits {
    /// Pairs with an order.
    pub pairs: Vec<PairUnit>,
    /// Triples of responses to one question, of whose pairs each is in `pairs`.
    pub triples: Vec<TripleUnit>,
    /// Responses with a score.
    pub responses: Vec<ResponseUnit>,
}

/// Two responses.
#[derive(Clone, Debug, PartialEq)]
pub struct PairUnit {
    /// The place of its verdict.
    pub verdict: usize,
    /// The judge's order; `None` where the pair is unscored.
    pub judge: Option<Ordering>,
    /// What people say.
    pub rated: PairRatings,
}

/// What people say of two responses.
#[derive(Clone, Debug, PartialEq)]
pub enum PairRatings {
    /// Which is better, by rater.
    Votes(Vec<(u32, Ordering)>),
    /// The scores of each, by rater.
    Scores([Vec<(u32, f64)>; 2]),
}

/// Three responses: the orders of the first and second, first and third, second and third.
#[derive(Clone, Debug, PartialEq)]
pub struct TripleUnit {
    /// The place of the first pair's verdict.
    pub verdict: usize,
    /// The judge's; `None` where one of the pairs is unscored.
    pub judge: Option<[Ordering; 3]>,
    /// The raters' together.
    pub label: [Ordering; 3],
}

/// One response.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseUnit {
    /// The place of the first verdict it is in.
    pub verdict: usize,
    /// Which response of that verdict it is.
    pub side: usize,
    /// The mean of the judge's scores over the pairs it is in; `None` where all are unscored.
    pub judge: Option<f64>,
    /// The scores that people gave it.
    pub ratings: Vec<(u32, f64)>,
}

impl PairRatings {
    /// The order that the raters give together, without one of them if asked: of preferences the most
    /// frequent, of scores that of the means over those who rated both; where nobody did, over all.
    pub fn order(&self, without: Option<u32>) -> Option<Ordering> {
        match self {
            Self::Votes(votes) => majority(votes, without),
            Self::Scores([a, b]) => {
                let means = |a: &[_], b: &[_]| Some([mean(a, without)?, mean(b, without)?]);
                let both = means(&common(a, b), &common(b, a));
                both.or_else(|| means(a, b)).map(compare)
            }
        }
    }

    /// The order that each rater gives who rated both.
    pub fn votes(&self) -> Vec<(u32, Ordering)> {
        match self {
            Self::Votes(votes) => votes.clone(),
            Self::Scores([a, b]) => {
                let of = |rater| b.iter().find(|(other, _)| *other == rater);
                let vote =
                    |(rater, x): &(u32, f64)| of(*rater).map(|(_, y)| (*rater, compare([*x, *y])));
                a.iter().filter_map(vote).collect()
            }
        }
    }
}

/// The ratings by those who gave the other response one too.
fn common(ratings: &[(u32, f64)], others: &[(u32, f64)]) -> Vec<(u32, f64)> {
    let rated = |rater| others.iter().any(|(other, _)| *other == rater);
    let kept = ratings.iter().filter(|(rater, _)| rated(*rater));
    kept.copied().collect()
}

impl ResponseUnit {
    /// The mean of the raters' scores, without one of them if asked.
    pub fn label(&self, without: Option<u32>) -> Option<f64> {
        mean(&self.ratings, without)
    }
}

/// An order as a number: 1 where the first response is better, 0 for a tie, −1 otherwise.
pub(super) fn number(order: Ordering) -> f64 {
    f64::from(order as i8)
}
