//! An evaluation of a pair as people read and write it: scores and analyses by criterion.

use std::collections::BTreeMap;

use acem3_conclusion::OrderVerdict;
use acem3_experts::prompt::Rubric;
use acem3_experts::{BranchEvaluation, Criterion, Rating, Score};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::judging::judge::recorded_verdict::{RecordedOrder, ResponseScores};

/// Scores and analyses of the two responses, in the order of the pair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RatedPair {
    /// Scores, in the range of the rubric. Final scores may be absent: they are the labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scores: Option<[u8; 2]>,
    /// Reasons for the scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) analyses: Option<[String; 2]>,
}

/// An evaluation of a pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PairEvaluation {
    /// True if the judge saw the second response first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) swapped: bool,
    /// Scores and analyses of each criterion.
    pub(crate) criteria: BTreeMap<Criterion, RatedPair>,
    /// Final scores and their analyses.
    #[serde(rename = "final")]
    pub(crate) conclusion: RatedPair,
}

impl PairEvaluation {
    /// Converts the result of a presentation order.
    pub(super) fn from_order(order: &RecordedOrder) -> Self {
        let criteria = order.aspects.values().flatten();
        Self {
            swapped: order.swapped,
            criteria: criteria.map(|(criterion, scores)| (*criterion, rated(scores))).collect(),
            conclusion: rated(&order.conclusion),
        }
    }

    /// Converts the evaluation to the result of a presentation order. `labels`: the labelled final
    /// scores, which replace missing final scores.
    ///
    /// # Errors
    /// If a criterion, a score or an analysis is missing or not valid.
    pub(super) fn to_order(
        &self,
        swapped: bool,
        labels: [f64; 2],
        rubric: &Rubric,
    ) -> Result<OrderVerdict> {
        let criteria = rubric.aspects.iter().flat_map(|aspect| &aspect.criteria);
        let known: Vec<Criterion> = criteria.map(|criterion| criterion.key).collect();
        if let Some(other) = self.criteria.keys().find(|criterion| !known.contains(criterion)) {
            let known: Vec<&str> = known.into_iter().map(Criterion::key).collect();
            bail!(
                "unknown criterion `{}`\nhint: the criteria are {}",
                other.key(),
                known.join(", ")
            );
        }
        let range = rubric.scores;
        let branches = rubric.aspects.iter().map(|aspect| {
            let ratings = aspect.criteria.iter().map(|criterion| {
                let name = criterion.key.key();
                let rated = self.criteria.get(&criterion.key).with_context(|| {
                    format!("criterion `{name}` is missing\nhint: give its scores and analyses")
                })?;
                Ok((criterion.key, rated.to_ratings(name, None, range)?))
            });
            Ok(BranchEvaluation { aspect: aspect.key, ratings: ratings.collect::<Result<_>>()? })
        });
        Ok(OrderVerdict {
            swapped,
            first_shown: None,
            branches: branches.collect::<Result<_>>()?,
            conclusion: self.conclusion.to_ratings("final", Some(labels), range)?,
        })
    }

    /// Returns all analyses.
    pub(super) fn analyses(&self) -> impl Iterator<Item = &str> {
        let rated = self.criteria.values().chain([&self.conclusion]);
        rated.filter_map(|rated| rated.analyses.as_ref()).flatten().map(String::as_str)
    }
}

impl RatedPair {
    /// Converts scores and analyses to ratings.
    fn to_ratings(
        &self,
        name: &str,
        labels: Option<[f64; 2]>,
        [low, high]: [u8; 2],
    ) -> Result<Vec<Rating>> {
        let scores = match (self.scores, labels) {
            (Some(scores), _) => scores,
            (None, Some(labels)) => labels_as_scores(labels, [low, high]).with_context(|| {
                format!(
                    "`{name}` has no scores, and the labels {} and {} are no scores from {low} to {high}\n\
                     hint: add `\"scores\": [a, b]` with two whole numbers in the order of the labels",
                    labels[0], labels[1]
                )
            })?,
            (None, None) => bail!("`{name}` has no scores\nhint: add `\"scores\": [a, b]`"),
        };
        if let Some(score) = scores.iter().find(|score| !(low..=high).contains(score)) {
            bail!("`{name}` has the score {score}, expected {low} to {high}\nhint: correct it");
        }
        let analyses = self
            .analyses
            .as_ref()
            .filter(|analyses| analyses.iter().all(|analysis| !analysis.trim().is_empty()));
        let analyses = analyses.with_context(|| {
            format!(
                "`{name}` lacks an analysis\n\
                 hint: give one for each response, `\"analyses\": [\"...\", \"...\"]`"
            )
        })?;
        let ratings = scores
            .iter()
            .zip(analyses)
            .map(|(score, analysis)| Rating::new(analysis.clone(), Score::from_value(*score)));
        Ok(ratings.collect())
    }
}

/// Returns labels as scores if they are whole numbers in the range.
fn labels_as_scores(labels: [f64; 2], [low, high]: [u8; 2]) -> Option<[u8; 2]> {
    let score = |label: f64| (low..=high).find(|score| f64::from(*score).total_cmp(&label).is_eq());
    Some([score(labels[0])?, score(labels[1])?])
}

fn rated(scores: &ResponseScores) -> RatedPair {
    let analyses = scores.analyses.clone();
    RatedPair {
        scores: <[u8; 2]>::try_from(scores.scores.as_slice()).ok(),
        analyses: analyses.and_then(|analyses| <[String; 2]>::try_from(analyses).ok()),
    }
}
