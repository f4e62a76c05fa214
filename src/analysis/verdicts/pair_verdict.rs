//! A pair of responses with the scores of its verdict.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use acem3_conclusion::compare_scores;
use serde_json::{Map, Value};

use super::response_length::count_words;
use super::slim_record::{ExpectedCriteria, SkippedCriteria, SlimRecord, SlimStatus};
use crate::data::images::image_cluster::ImageCluster;
use crate::data::labels::ScoreTarget;
use crate::judging::judge::recorded_verdict::pair_values;
use crate::support::digest::Digest;

/// A pair of responses with the scores of its verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct PairVerdict {
    /// Id of the case.
    pub case: String,
    /// The two models.
    pub pair: [String; 2],
    /// Bootstrap cluster: the image, or the case if it has no image.
    pub cluster: String,
    /// True if the case has an image.
    pub has_image: bool,
    /// The scores; `None` if the pair is unscored.
    pub scores: Option<TargetScoreMap>,
    /// The scores of each presentation order; empty if the pair is unscored. A pair has at most two, a
    /// pair of a list as many as the list has responses.
    pub orders: Vec<OrderScores>,
    /// Length of each response in words.
    pub words: [usize; 2],
    /// True if both responses are byte-identical.
    pub has_identical_responses: bool,
    /// Subgroup fields.
    pub meta: Map<String, Value>,
    /// Line of the record, counted from one.
    pub line: u64,
    /// Key of the verdict: equal keys mean equal judges, questions, responses and images. A pair of
    /// responses that were judged alone has a hash of their keys.
    pub key: Option<Digest>,
}

/// The scores of one presentation order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrderScores {
    /// True if the second response was shown first.
    pub swapped: bool,
    /// The final scores, 0 to 5, in the order of the pair.
    pub scores: [f64; 2],
}

/// Scores of two responses by target, 0 to 5.
pub type TargetScoreMap = BTreeMap<ScoreTarget, [f64; 2]>;

impl PairVerdict {
    /// Converts the record of a line; `None` if the record has no pair.
    pub(super) fn from_record<A>(
        record: SlimRecord<A>,
        scores: Option<ResponseScoreMap>,
        line: u64,
    ) -> Option<Self> {
        let case = record.case_name();
        let pair = record.pair?;
        let cluster = match &record.image {
            Some(image) => ImageCluster::from_image(&image.name, image.sha256),
            None => ImageCluster::Case(&case),
        };
        let responses = record.responses.as_ref();
        let orders = record.orders.iter().map(|order| OrderScores {
            swapped: order.swapped,
            scores: pair_values(&order.scores),
        });
        Some(Self {
            has_identical_responses: responses.is_some_and(|texts| texts.first() == texts.get(1)),
            orders: orders.collect(),
            cluster: cluster.to_string(),
            has_image: record.image.is_some(),
            scores: scores.filter(|_| record.status == SlimStatus::Judged).map(|scores| {
                let pairs = scores.into_iter().map(|(target, all)| (target, pair_values(&all)));
                pairs.collect()
            }),
            words: responses.map_or([0; 2], |texts| {
                [0, 1].map(|r| texts.get(r).map_or(0, |text| count_words(text)))
            }),
            meta: record.meta,
            case,
            pair,
            line,
            key: record.key,
        })
    }

    /// Returns true if each response was shown before the other in some presentation order.
    pub fn is_in_both_orders(&self) -> bool {
        [false, true].iter().all(|swapped| self.orders_with(*swapped).next().is_some())
    }

    /// Returns the final scores of each presentation order that shows the second response before the
    /// first (`swapped`), or of each other one.
    pub fn orders_with(&self, swapped: bool) -> impl Iterator<Item = [f64; 2]> {
        self.orders.iter().filter(move |order| order.swapped == swapped).map(|order| order.scores)
    }

    /// Returns the better response on a target; `None` if it has no score.
    pub fn order(&self, target: ScoreTarget) -> Option<Ordering> {
        Some(compare_scores(*self.scores.as_ref()?.get(&target)?))
    }
}

/// The scores of each response of a record, by target.
pub(super) type ResponseScoreMap = BTreeMap<ScoreTarget, Vec<f64>>;

/// Returns the chosen scores of a record.
pub(super) fn chosen_scores(record: &SlimRecord<SkippedCriteria>) -> Option<ResponseScoreMap> {
    let aspects =
        record.aspects.iter().map(|(aspect, scores)| (ScoreTarget::Aspect(*aspect), scores));
    let criteria = record
        .criteria
        .iter()
        .map(|(criterion, scores)| (ScoreTarget::Criterion(*criterion), scores));
    let final_score = (ScoreTarget::Final, record.scores.as_ref()?);
    let all = aspects.chain(criteria).chain([final_score]);
    Some(all.map(|(target, scores)| (target, scores.clone())).collect())
}

/// Computes the expected scores of a record. A criterion has the mean over the presentation orders,
/// an aspect the mean over its criteria.
pub(super) fn expected_scores(record: &SlimRecord<ExpectedCriteria>) -> Option<ResponseScoreMap> {
    let mut sums: BTreeMap<ScoreTarget, (Vec<f64>, f64)> = BTreeMap::new();
    for (aspect, criteria) in record.orders.iter().flat_map(|order| &order.aspects) {
        for (criterion, scores) in criteria {
            for target in [ScoreTarget::Aspect(*aspect), ScoreTarget::Criterion(*criterion)] {
                let (sum, n) = sums.entry(target).or_default();
                sum.resize(scores.expected.len(), 0.0);
                for (sum, expected) in sum.iter_mut().zip(&scores.expected) {
                    *sum += expected;
                }
                *n += 1.0;
            }
        }
    }
    let means = sums
        .into_iter()
        .map(|(target, (sum, n))| (target, sum.into_iter().map(|s| s / n).collect()));
    let final_score = (ScoreTarget::Final, record.expected.clone()?);
    Some(means.chain([final_score]).collect())
}
