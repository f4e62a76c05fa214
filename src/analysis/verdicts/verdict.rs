//! One pair and its scores.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use acem3_conclusion::compare;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::slim::{ExpectedCriteria, Skipped, SlimImage, SlimRecord, SlimStatus};
use crate::analysis::verdicts::subgroup_fields::words;
use crate::data::labels::ScoreTarget;

/// The scores of a judge that an analysis uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum ScoreKind {
    /// Chosen scores: the most probable ones
    #[default]
    Chosen,
    /// Expected scores: the means under the judge's probabilities
    Expected,
}

/// A pair of responses, and what the judge made of it.
#[derive(Clone, Debug, PartialEq)]
pub struct PairVerdict {
    /// The id of the case.
    pub case: String,
    /// The two models.
    pub pair: [String; 2],
    /// What is drawn as a whole: the image, or the case where there is none.
    pub cluster: String,
    /// The scores; `None` where the pair is unscored.
    pub scores: Option<TargetScoreMap>,
    /// What each presentation order gave; empty where the pair is unscored.
    pub orders: Vec<OrderScores>,
    /// The length of each response in words.
    pub words: [usize; 2],
    /// Whether both responses are the same, byte by byte.
    pub identical: bool,
    /// Subgroup fields.
    pub meta: Map<String, Value>,
    /// The line of the record.
    pub line: u64,
}

/// What a judge made of a pair in one presentation order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrderScores {
    /// True when the second response was shown first.
    pub swapped: bool,
    /// The final scores, 0 to 5, in the order of the pair.
    pub scores: [f64; 2],
}

/// A judge's scores of two responses by target, 0 to 5.
pub type TargetScoreMap = BTreeMap<ScoreTarget, [f64; 2]>;

impl PairVerdict {
    /// What stands in line `number`; `None` where there was no pair to judge.
    pub(super) fn of<A>(
        line: SlimRecord<A>,
        scores: Option<TargetScoreMap>,
        number: u64,
    ) -> Option<Self> {
        let (case, pair) = (line.case?, line.pair?);
        let name = |image: SlimImage| image.sha256.map_or(image.name, |hash| hash.to_string());
        let identical = (line.responses.as_ref()).is_some_and(|[first, second]| first == second);
        let presented = line.orders.iter().map(|order| OrderScores {
            swapped: order.swapped,
            scores: order.scores,
        });
        Some(Self {
            identical,
            orders: presented.collect(),
            cluster: line.image.map_or_else(|| format!("case {case}"), name),
            scores: scores.filter(|_| line.status == SlimStatus::Judged),
            words: line
                .responses
                .map_or([0; 2], |texts| texts.each_ref().map(|text| words(text))),
            meta: line.meta,
            case,
            pair,
            line: number,
        })
    }

    /// The first of its scores that is none.
    pub(super) fn beyond(&self) -> Option<f64> {
        let scores = self.scores.iter().flat_map(BTreeMap::values);
        let presented = self.orders.iter().map(|order| &order.scores);
        let mut all = scores.chain(presented).flatten();
        all.find(|score| !(0.0..=5.0).contains(*score)).copied()
    }

    /// Which response is better on a target; `None` where it has no score.
    pub fn order(&self, target: ScoreTarget) -> Option<Ordering> {
        Some(compare(*self.scores.as_ref()?.get(&target)?))
    }
}

/// The scores that the judge chose.
pub(super) fn chosen(line: &SlimRecord<Skipped>) -> Option<TargetScoreMap> {
    let aspects = line
        .aspects
        .iter()
        .map(|(a, s)| (ScoreTarget::Aspect(*a), *s));
    let criteria = line
        .criteria
        .iter()
        .map(|(c, s)| (ScoreTarget::Criterion(*c), *s));
    let last = (ScoreTarget::Final, line.scores?);
    Some(aspects.chain(criteria).chain([last]).collect())
}

/// Expected scores: of a criterion the mean over the presentation orders, of an aspect that over its
/// criteria.
pub(super) fn expected(line: &SlimRecord<ExpectedCriteria>) -> Option<TargetScoreMap> {
    let mut sums: BTreeMap<ScoreTarget, ([f64; 2], f64)> = BTreeMap::new();
    for (aspect, criteria) in line.orders.iter().flat_map(|order| &order.aspects) {
        for (criterion, marks) in criteria {
            for target in [
                ScoreTarget::Aspect(*aspect),
                ScoreTarget::Criterion(*criterion),
            ] {
                let (sum, n) = sums.entry(target).or_default();
                *sum = [0, 1].map(|r| sum[r] + marks.expected[r]);
                *n += 1.0;
            }
        }
    }
    let means = sums
        .into_iter()
        .map(|(target, (sum, n))| (target, sum.map(|s| s / n)));
    Some(
        means
            .chain([(ScoreTarget::Final, line.expected?)])
            .collect(),
    )
}
