//! The evaluation of a member in one presentation order of a recorded verdict.

use acem3_experts::{Aspect, Criterion};

use super::skipped_mistakes::SkipReason;
use crate::judging::judge::recorded_verdict::{RecordedOrder, RecordedVerdict, ResponseScores};
use crate::training::preferences::negatives::EvaluationRatings;

/// A member that evaluated responses.
pub(super) struct EvaluatedMember {
    /// Index of the member.
    pub(super) index: usize,
    /// Aspect that it evaluates; `None` for the conclusion model.
    pub(super) aspect: Option<Aspect>,
    /// Criteria of its evaluation; empty if it gives one score for each response.
    pub(super) criteria: Vec<Criterion>,
}

impl EvaluatedMember {
    /// Returns the aspect whose labels the evaluation is compared with; `None` for the final labels.
    pub(super) fn target(&self) -> Option<Aspect> {
        self.aspect.filter(|_| !self.criteria.is_empty())
    }
}

/// Evaluation of a member.
pub(super) struct PresentedEvaluation {
    /// Analyses and scores in the order in which the responses were shown.
    pub(super) ratings: EvaluationRatings,
    /// Mean score of each response, in the order of the record.
    pub(super) scores: Vec<f64>,
}

impl PresentedEvaluation {
    /// Reads the evaluation of a member in the presentation order with this index.
    pub(super) fn of_order(
        verdict: &RecordedVerdict,
        index: usize,
        member: &EvaluatedMember,
    ) -> Result<Self, SkipReason> {
        let order = verdict.orders.get(index).ok_or(SkipReason::NoResponses)?;
        let by_criterion = scores_of_member(order, member)?;
        let mut ratings = Vec::new();
        for response in shown_order(verdict, index) {
            for scores in &by_criterion {
                let analyses = scores.analyses.as_ref().ok_or(SkipReason::NoAnalyses)?;
                let analysis = analyses.get(response).ok_or(SkipReason::NoResponses)?;
                let score = scores.scores.get(response).ok_or(SkipReason::NoResponses)?;
                if analysis.trim().is_empty() {
                    return Err(SkipReason::NoAnalyses);
                }
                ratings.push((analysis.clone(), *score));
            }
        }
        let responses = order.conclusion.scores.len();
        Ok(Self { ratings, scores: mean_scores(&by_criterion, responses) })
    }
}

/// Returns the scores of a member, one for each criterion, or the final ones.
fn scores_of_member<'a>(
    order: &'a RecordedOrder,
    member: &EvaluatedMember,
) -> Result<Vec<&'a ResponseScores>, SkipReason> {
    let Some(aspect) = member.target() else {
        return Ok(vec![&order.conclusion]);
    };
    let of_aspect = order.aspects.get(&aspect).ok_or(SkipReason::OtherRubric)?;
    let scores = member.criteria.iter().map(|criterion| of_aspect.get(criterion));
    scores.collect::<Option<Vec<_>>>().ok_or(SkipReason::OtherRubric)
}

fn mean_scores(by_criterion: &[&ResponseScores], responses: usize) -> Vec<f64> {
    let mean = |response: usize| {
        let scores = by_criterion.iter().filter_map(|scores| scores.scores.get(response));
        let sum: f64 = scores.map(|score| f64::from(*score)).sum();
        sum / by_criterion.len().max(1) as f64
    };
    (0..responses).map(mean).collect()
}

/// Returns the indices of the responses in the order in which a presentation shows them.
pub(super) fn shown_order(verdict: &RecordedVerdict, index: usize) -> Vec<usize> {
    let Some(order) = verdict.orders.get(index) else {
        return Vec::new();
    };
    let responses = order.conclusion.scores.len();
    match order.first_shown {
        Some(first) => (first..responses).chain(0..first.min(responses)).collect(),
        None if order.swapped => (0..responses).rev().collect(),
        None => (0..responses).collect(),
    }
}
