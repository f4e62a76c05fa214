//! Values of one trial; measures are their means. `None` if the trial has no such value.

use std::cmp::Ordering;

use acem3_conclusion::compare_scores;

use super::trial_measure::LabelledTrial;
use crate::analysis::audit::result::VerdictScores;

/// Smallest drop that counts: a hundredth of the scale. Points.
pub(super) const MIN_DROP: f64 = 0.05;

/// Returns the proportion of presentations in which identical responses do not tie.
pub(super) fn not_tied_proportion(labelled: &LabelledTrial<'_>) -> Option<f64> {
    labelled.trial.after.as_ref()?.not_tied_proportion()
}

/// Returns the proportion of presentations in which the original pair does not tie.
pub(super) fn not_tied_before(labelled: &LabelledTrial<'_>) -> Option<f64> {
    labelled.trial.before.as_ref()?.not_tied_proportion()
}

/// Returns the expected score of the perturbed response minus that of the other one in the same
/// verdict. Points.
pub(super) fn gain_over_other(labelled: &LabelledTrial<'_>) -> Option<f64> {
    let (scores, side) = (labelled.trial.after.as_ref()?, labelled.trial.side?);
    Some(scores.expected.get(side)? - scores.expected.get(1 - side.min(1))?)
}

/// Returns the win of the perturbed response: 1, ½ or 0.
pub(super) fn perturbed_wins(labelled: &LabelledTrial<'_>) -> Option<f64> {
    Some(win(labelled.trial.after.as_ref()?, labelled.trial.side?))
}

/// Returns the score gain of the perturbed response relative to the verdict before. Points.
pub(super) fn score_gain(labelled: &LabelledTrial<'_>) -> Option<f64> {
    let (before, after) = labelled.trial.verdicts()?;
    let side = labelled.trial.side?;
    Some(after.expected.get(side)? - before.expected.get(side)?)
}

/// Returns 1 if the preference moved towards the perturbed response, else 0.
pub(super) fn preference_gain(labelled: &LabelledTrial<'_>) -> Option<f64> {
    let (before, after) = labelled.trial.verdicts()?;
    let side = labelled.trial.side?;
    Some(indicator(win(after, side) > win(before, side)))
}

/// Returns the win of the perturbed response minus its win before: a text that only adds noise has a
/// mean of zero.
pub(super) fn win_gain(labelled: &LabelledTrial<'_>) -> Option<f64> {
    let (before, after) = labelled.trial.verdicts()?;
    let side = labelled.trial.side?;
    Some(win(after, side) - win(before, side))
}

/// Computes the mean absolute change of the knowledge scores of both responses. Points.
pub(super) fn knowledge_change(labelled: &LabelledTrial<'_>) -> Option<f64> {
    let (before, after) = labelled.trial.verdicts()?;
    let change = |r: usize| (after.knowledge[r] - before.knowledge[r]).abs();
    Some(f64::midpoint(change(0), change(1)))
}

/// Returns 1 if the preferred response changed, also from or to a tie; else 0.
pub(super) fn preference_change(labelled: &LabelledTrial<'_>) -> Option<f64> {
    let (before, after) = labelled.trial.verdicts()?;
    Some(indicator(before.order != after.order))
}

/// Computes accuracy before minus accuracy after, for a pair whose label prefers a response.
pub(super) fn accuracy_loss(labelled: &LabelledTrial<'_>) -> Option<f64> {
    let (before, after) = labelled.trial.verdicts()?;
    let label = labelled.label.filter(|label| *label != Ordering::Equal)?;
    Some(accuracy(before, label) - accuracy(after, label))
}

/// Returns the knowledge score of the correct response minus that of the response with an error
/// next to it. Points.
pub(super) fn error_penalty(labelled: &LabelledTrial<'_>) -> Option<f64> {
    let knowledge = labelled.trial.after.as_ref()?.knowledge;
    let side = labelled.trial.side?;
    Some(knowledge.get(1 - side.min(1))? - knowledge.get(side)?)
}

/// Returns 1 if an error costs less than [`MIN_DROP`], else 0.
pub(super) fn is_error_missed(labelled: &LabelledTrial<'_>) -> Option<f64> {
    Some(indicator(error_penalty(labelled)? < MIN_DROP))
}

/// Returns the win of one response by the final scores: 1, ½ or 0.
fn win(scores: &VerdictScores, side: usize) -> f64 {
    match (Ordering::from(scores.order), side) {
        (Ordering::Equal, _) => 0.5,
        (Ordering::Greater, 0) | (Ordering::Less, 1) => 1.0,
        _ => 0.0,
    }
}

/// Returns the win of the response that the label prefers, by the expected scores: 1, ½ or 0.
fn accuracy(scores: &VerdictScores, label: Ordering) -> f64 {
    match compare_scores(scores.expected) {
        Ordering::Equal => 0.5,
        order => indicator(order == label),
    }
}

fn indicator(condition: bool) -> f64 {
    f64::from(u8::from(condition))
}
