//! A response that was judged alone, and the pairs of such responses.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::pair_verdict::{PairVerdict, ResponseScoreMap};
use super::response_length::count_words;
use super::slim_record::{SlimRecord, SlimStatus};
use crate::data::images::image_cluster::ImageCluster;
use crate::data::labels::ScoreTarget;

/// A response that was judged alone.
#[derive(Clone, Debug)]
pub(super) struct AloneResponse {
    case: String,
    model: String,
    cluster: String,
    text: String,
    /// The scores by target; `None` if the response is unscored.
    scores: Option<BTreeMap<ScoreTarget, f64>>,
    meta: Map<String, Value>,
    line: u64,
}

impl AloneResponse {
    /// Converts the record of a line; `None` if it is about no single response.
    pub(super) fn from_record<A>(
        record: SlimRecord<A>,
        scores: Option<ResponseScoreMap>,
        line: u64,
    ) -> Option<Self> {
        let case = record.case?;
        let [model] = <[String; 1]>::try_from(record.models).ok()?;
        let cluster = match &record.image {
            Some(image) => ImageCluster::from_image(&image.name, image.sha256),
            None => ImageCluster::Case(&case),
        };
        let first = |all: Vec<f64>| all.first().copied();
        let scores = scores.filter(|_| record.status == SlimStatus::Judged).map(|scores| {
            scores.into_iter().filter_map(|(target, all)| Some((target, first(all)?))).collect()
        });
        Some(Self {
            cluster: cluster.to_string(),
            text: record.responses.and_then(|texts| texts.into_iter().next()).unwrap_or_default(),
            scores,
            meta: record.meta,
            case,
            model,
            line,
        })
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
            scores,
            orders: Vec::new(),
            words: [count_words(&self.text), count_words(&other.text)],
            has_identical_responses: self.text == other.text,
            meta: self.meta.clone(),
            line: self.line,
            key: None,
        }
    }
}

/// Compares all responses of each case with each other. The responses of a case follow each other.
pub(super) fn pairs_of_cases(responses: &[AloneResponse]) -> Vec<PairVerdict> {
    let cases = responses.chunk_by(|a, b| a.case == b.case);
    let pairs_of_case = |case: &[AloneResponse]| -> Vec<PairVerdict> {
        let later = |(i, first): (usize, &AloneResponse)| {
            let rest = case.iter().skip(i + 1);
            rest.map(|second| first.compare(second)).collect::<Vec<_>>()
        };
        case.iter().enumerate().flat_map(later).collect()
    };
    cases.flat_map(pairs_of_case).collect()
}
