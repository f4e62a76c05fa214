//! The ratings of a recorded presentation order as they stand in its evaluations.

use acem3_experts::Aspect;
use anyhow::{Context, Result, bail};

use crate::judging::judge::recorded_verdict::{RecordedOrder, ResponseScores};
use crate::training::preferences::EvaluationRatings;

/// Returns the ratings of an aspect in the order of the evaluation format: all criteria of the
/// response shown first, then all criteria of the other.
///
/// # Errors
/// If the verdict has no score for a criterion, or a score has no analysis.
pub(crate) fn aspect_ratings(order: &RecordedOrder, aspect: Aspect) -> Result<EvaluationRatings> {
    let scores = order.aspects.get(&aspect);
    let by_criterion = aspect.criteria().iter().map(|criterion| {
        let scores = scores.and_then(|scores| scores.get(criterion));
        let scores =
            scores.with_context(|| format!("the verdict has no score for {}", criterion.key()))?;
        in_presentation_order(scores, order.swapped)
    });
    let by_criterion: Vec<[(String, u8); 2]> = by_criterion.collect::<Result<_>>()?;
    let of_response = |r: usize| by_criterion.iter().map(move |pair| pair[r].clone());
    Ok(of_response(0).chain(of_response(1)).collect())
}

/// Returns the ratings of the conclusion in presentation order.
///
/// # Errors
/// If a score has no analysis.
pub(crate) fn conclusion_ratings(order: &RecordedOrder) -> Result<EvaluationRatings> {
    in_presentation_order(&order.conclusion, order.swapped).map(EvaluationRatings::from)
}

/// Returns both scores with their analyses, in presentation order.
fn in_presentation_order(scores: &ResponseScores, swapped: bool) -> Result<[(String, u8); 2]> {
    let analyses = scores.analyses.as_ref();
    let analyses = analyses
        .context("the verdict has scores without analyses, expected an analysis for each score")?;
    let rating = |r: usize| Some((analyses.get(r)?.clone(), *scores.scores.get(r)?));
    let [Some(first), Some(second)] = [rating(0), rating(1)] else {
        bail!("the verdict has scores of one response, expected two");
    };
    Ok(if swapped { [second, first] } else { [first, second] })
}
