//! A response that was judged alone or in a list, and the pairs of such responses.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::pair_verdict::{OrderScores, PairVerdict, ResponseScoreMap};
use super::response_length::count_words;
use super::slim_record::{SlimRecord, SlimStatus};
use crate::data::images::image_cluster::ImageCluster;
use crate::data::labels::ScoreTarget;
use crate::support::digest::Digest;

/// A response that was judged alone or in a list.
#[derive(Clone, Debug)]
pub(super) struct ScoredResponse {
    case: String,
    model: String,
    cluster: String,
    has_image: bool,
    text: String,
    /// The scores by target; `None` if the response is unscored.
    scores: Option<BTreeMap<ScoreTarget, f64>>,
    /// The place and the final score of the response in each presentation order of a list.
    shown: Vec<ShownScore>,
    meta: Map<String, Value>,
    line: u64,
    /// Key of the verdict on the response, or on its list.
    key: Option<Digest>,
}

/// A response in one presentation order of a list.
#[derive(Clone, Copy, Debug)]
struct ShownScore {
    /// Number of responses that were shown before it.
    place: usize,
    /// Its final score.
    score: f64,
}

impl ScoredResponse {
    /// Converts the record of a line to one item per response; none if it has no responses.
    pub(super) fn from_record<A>(
        record: &SlimRecord<A>,
        scores: Option<&ResponseScoreMap>,
        line: u64,
    ) -> Vec<Self> {
        let case = record.case_name();
        let cluster = match &record.image {
            Some(image) => ImageCluster::from_image(&image.name, image.sha256),
            None => ImageCluster::Case(&case),
        };
        let scores = scores.filter(|_| record.status == SlimStatus::Judged);
        let of_response = |(index, model): (usize, &String)| {
            let score =
                |(target, all): (&ScoreTarget, &Vec<f64>)| Some((*target, *all.get(index)?));
            let text = record.responses.as_ref().and_then(|texts| texts.get(index)).cloned();
            Self {
                case: case.clone(),
                model: model.clone(),
                cluster: cluster.to_string(),
                has_image: record.image.is_some(),
                text: text.unwrap_or_default(),
                scores: scores.map(|scores| scores.iter().filter_map(score).collect()),
                shown: shown_scores(record, index),
                meta: record.meta.clone(),
                line,
                key: record.key,
            }
        };
        record.models.iter().enumerate().map(of_response).collect()
    }

    /// Returns the final scores of both responses in each presentation order of their list.
    fn orders(&self, other: &Self) -> Vec<OrderScores> {
        let both = self.shown.iter().zip(&other.shown);
        let order = |(a, b): (&ShownScore, &ShownScore)| OrderScores {
            swapped: a.place > b.place,
            scores: [a.score, b.score],
        };
        both.map(order).collect()
    }

    /// Returns the key of the pair, which is independent of the order of the two responses; `None` if
    /// one of them has none.
    fn pair_key(&self, other: &Self) -> Option<Digest> {
        let mut keys = [(&self.model, self.key?), (&other.model, other.key?)];
        keys.sort_unstable_by_key(|(model, _)| *model);
        Some(Digest::sha256(&keys.map(|(_, key)| *key.as_bytes()).concat()))
    }

    /// Compares this response with a later one of the same case.
    fn compare(&self, other: &Self) -> PairVerdict {
        let scores = self.scores.as_ref().zip(other.scores.as_ref()).map(|(first, second)| {
            let both = |(target, score): (&ScoreTarget, &f64)| {
                Some((*target, [*score, *second.get(target)?]))
            };
            first.iter().filter_map(both).collect()
        });
        PairVerdict {
            case: self.case.clone(),
            pair: [self.model.clone(), other.model.clone()],
            cluster: self.cluster.clone(),
            has_image: self.has_image,
            scores,
            orders: self.orders(other),
            words: [count_words(&self.text), count_words(&other.text)],
            has_identical_responses: self.text == other.text,
            meta: self.meta.clone(),
            line: self.line,
            key: self.pair_key(other),
        }
    }
}

/// Returns the place and the final score of a response in each presentation order of a list.
fn shown_scores<A>(record: &SlimRecord<A>, index: usize) -> Vec<ShownScore> {
    let n = record.models.len();
    let shown = record.orders.iter().filter_map(|order| {
        let place = (index + n).checked_sub(order.first_shown?)? % n.max(1);
        Some(ShownScore { place, score: *order.scores.get(index)? })
    });
    shown.collect()
}

/// Compares all responses of each case with each other. The responses of a case follow each other.
pub(super) fn pairs_of_cases(responses: &[ScoredResponse]) -> Vec<PairVerdict> {
    let cases = responses.chunk_by(|a, b| a.case == b.case);
    let pairs_of_case = |case: &[ScoredResponse]| -> Vec<PairVerdict> {
        let later = |(i, first): (usize, &ScoredResponse)| {
            let rest = case.iter().skip(i + 1);
            rest.map(|second| first.compare(second)).collect::<Vec<_>>()
        };
        case.iter().enumerate().flat_map(later).collect()
    };
    cases.flat_map(pairs_of_case).collect()
}
