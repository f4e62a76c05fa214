//! Summary of a report on correctness: one finding per topic.

use super::graded_judge::GradedJudge;
use crate::analysis::correctness::{
    AccuracyDifference, AccuracyReport, CorrectnessAgreement, GraderAgreement, format_proportion,
};
use crate::analysis::report::sections::summary::describe_unscored;
use crate::statistics::Estimate;

/// Maximum number of significant differences that are named.
const MAX_NAMED: usize = 4;

/// Returns the findings of a judge, each with its topic.
pub(super) fn summary_findings(judge: &GradedJudge) -> Vec<(String, String)> {
    let findings = [
        ("models", describe_leader(&judge.accuracy)),
        ("exact match", describe_exact_match(judge)),
        ("labels", describe_agreement(judge.agreement.as_ref())),
        ("unscored", describe_unscored(&judge.counts)),
    ];
    findings.map(|(topic, finding)| (topic.to_owned(), finding)).into()
}

/// Names the most accurate model and the significant differences.
fn describe_leader(accuracy: &AccuracyReport) -> String {
    let Some(first) = accuracy.models.first().filter(|model| model.n > 0) else {
        return "unknown: no response has a verdict".to_owned();
    };
    let is_significant = |d: &&AccuracyDifference| d.difference.p_holm < 0.05;
    let significant = accuracy.differences.iter().filter(is_significant);
    let significant: Vec<String> = significant
        .map(|d| {
            let points = 100.0 * d.difference.value;
            format!("{} above {} by {points:.1} points", d.models[0], d.models[1])
        })
        .collect();
    let certainty = match (accuracy.models.len(), significant.len()) {
        (1, _) => "the only model".to_owned(),
        (_, 0) => "no two models differ significantly".to_owned(),
        (_, n) if n > MAX_NAMED => {
            format!("{n} of {} differences are significant", accuracy.differences.len())
        }
        _ => format!("significant: {}", significant.join("; ")),
    };
    let value = format_proportion(&first.accuracy);
    if accuracy.models.len() == 1 {
        return format!("accuracy of {} {value}; {certainty}", first.model);
    }
    format!("{} is first (accuracy {value}); {certainty}", first.model)
}

/// Counts the responses on which the judge and exact match differ.
fn describe_exact_match(judge: &GradedJudge) -> String {
    let graded = judge.graded.responses.iter().filter_map(|r| Some((r.is_correct()?, r.is_exact)));
    let graded: Vec<(bool, bool)> = graded.collect();
    let count = |pair: (bool, bool)| graded.iter().filter(|found| **found == pair).count();
    format!(
        "differs from the judge on {} of {}: {} correct without an exact match, {} wrong with one",
        count((true, false)) + count((false, true)),
        graded.len(),
        count((true, false)),
        count((false, true))
    )
}

/// Formats the agreement of the judge, and of exact match, with the labels.
fn describe_agreement(agreement: Option<&CorrectnessAgreement>) -> String {
    let Some(agreement) = agreement else {
        return "agreement with labels is unknown: there are no labels".to_owned();
    };
    let of = |name: &str| agreement.graders.iter().find(|grader| grader.grader == name);
    let value = |name: &str, estimate: fn(&GraderAgreement) -> &Estimate| {
        of(name).map_or_else(String::new, |grader| format_proportion(estimate(grader)))
    };
    format!(
        "the judge agrees with {} of {} labels, exact match with {}",
        value("judge", |grader| &grader.agreement),
        agreement.n,
        value("exact match", |grader| &grader.agreement)
    )
}
