//! Evaluates the trials of a probe that judges perturbed pairs.

use super::probe_table::trial_probe;
use super::trial_measure::LabelledTrial;
use super::trial_probe::{ConclusionRule, MeasureScope, TrialProbe};
use super::trial_set::TrialSet;
use crate::analysis::audit::perturbations::Perturbation;
use crate::analysis::audit::probe::Probe;
use crate::analysis::audit::result::{AuditMeasure, AuditTrial, Finding};
use crate::analysis::audit::rules::{
    Conclusion, conclude_identical, conclude_image, conclude_reference,
};
use crate::statistics::Bootstrap;

/// Pairs that a probe skipped.
pub(crate) struct SkippedPairs<'a> {
    /// Number of responses without a word to replace, by medical error.
    pub(crate) not_applicable: Vec<(Perturbation, usize)>,
    /// Number of pairs or responses skipped for other reasons.
    pub(crate) reasons: Vec<(&'a str, usize)>,
}

/// Evaluates the trials of a probe. A probe that needs no new verdicts has no trials and does not
/// run.
pub(crate) fn evaluate_probe(
    probe: Probe,
    trials: Vec<LabelledTrial<'_>>,
    skipped: &SkippedPairs<'_>,
    bootstrap: Bootstrap,
) -> Finding {
    let unscored = unscored_note(trials.iter().map(|labelled| labelled.trial));
    let mut finding = match trial_probe(probe) {
        Some(definition) => build_finding(probe, definition, &TrialSet::new(trials, bootstrap)),
        None => Finding::not_run(probe, "the probe needs existing verdicts only"),
    };
    if !finding.measures.is_empty() {
        finding.notes.extend(not_applicable_note(&skipped.not_applicable));
    }
    let reasons = skipped.reasons.iter();
    finding.notes.extend(reasons.map(|(reason, n)| format!("skipped: {n} {reason}")));
    finding.notes.extend(unscored);
    finding
}

fn build_finding(probe: Probe, definition: &TrialProbe, trials: &TrialSet<'_>) -> Finding {
    let tested: Vec<_> = Perturbation::tested_by(probe).collect();
    let mut measures = compute_measures(definition, trials, &tested);
    let conclusion = conclude(&definition.rule, &mut measures, &tested);
    let has_measure =
        |perturbation: &Perturbation| measures.iter().any(|m| belongs_to(m, *perturbation));
    let is_missing = !definition.required_perturbations.is_empty()
        && !definition.required_perturbations.iter().any(has_measure);
    let Some(conclusion) = conclusion.filter(|_| !is_missing) else {
        return Finding::not_run(probe, definition.not_run);
    };
    let missing = definition.missing_note.filter(|(p, _)| !has_measure(p));
    let mut notes: Vec<String> = missing.into_iter().map(|(_, note)| note.to_owned()).collect();
    notes.extend(conclusion.notes);
    let worst = conclusion.ranked.first().copied();
    notes.extend(worst.and_then(|worst| trials.variants_note(worst)));
    measures.sort_by_key(|measure| {
        conclusion.ranked.iter().position(|perturbation| belongs_to(measure, *perturbation))
    });
    Finding {
        probe,
        outcome: conclusion.outcome,
        summary: conclusion.sentence,
        worst: worst.map(Perturbation::key),
        notes,
        measures,
    }
}

/// Returns true if a measure is that of this perturbation.
fn belongs_to(measure: &AuditMeasure, perturbation: Perturbation) -> bool {
    measure.key.ends_with(&format!(":{}", perturbation.key()))
}

/// Computes the measures of a probe, except those for which no trial has a value.
fn compute_measures(
    definition: &TrialProbe,
    trials: &TrialSet<'_>,
    tested: &[Perturbation],
) -> Vec<AuditMeasure> {
    let mut measures = Vec::new();
    for scope in definition.measures {
        match scope {
            MeasureScope::All(measure) => measures.extend(trials.measure(measure, tested)),
            MeasureScope::Each(each) => {
                for perturbation in tested {
                    let measures_of_one = each.iter().filter_map(|measure| {
                        Some(AuditMeasure {
                            key: measure.name.key_for(&perturbation.key()),
                            title: measure.name.title_for(perturbation.title()),
                            ..trials.measure(measure, &[*perturbation])?
                        })
                    });
                    measures.extend(measures_of_one);
                }
            }
        }
    }
    measures
}

/// Applies the rule of a probe. `None` if its measures are missing.
fn conclude(
    rule: &ConclusionRule,
    measures: &mut [AuditMeasure],
    tested: &[Perturbation],
) -> Option<Conclusion> {
    let find = |key: &str| measures.iter().find(|measure| measure.key == key);
    match rule {
        ConclusionRule::Identical(name) => {
            let measure = find(name.key)?;
            let others = measure.control.as_ref().and_then(|control| control.value);
            Some(conclude_identical(&measure.estimate, others))
        }
        ConclusionRule::Interval { measure, rule, other, suffix } => {
            let mut conclusion = rule.conclude(find(measure.key)?.net_of_control(), measure.unit);
            let other = find(other.key)?.estimate.describe(other.unit);
            conclusion.sentence += &suffix.replace("{other}", &other);
            Some(conclusion)
        }
        ConclusionRule::Image => Some(conclude_image(measures, tested)),
        ConclusionRule::Reference => Some(conclude_reference(measures, tested)),
        ConclusionRule::AddedText(rule) => rule.conclude(measures, tested),
    }
}

/// Describes how many responses have no word to replace, by medical error.
fn not_applicable_note(counts: &[(Perturbation, usize)]) -> Option<String> {
    let counts: Vec<String> = counts
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(perturbation, n)| format!("{} {n}", perturbation.title()))
        .collect();
    (!counts.is_empty())
        .then(|| format!("responses without a word to replace, by error: {}", counts.join(", ")))
}

/// Describes how many trials have no verdict, with the first reason; `None` if all have one.
fn unscored_note<'a>(trials: impl Iterator<Item = &'a AuditTrial>) -> Option<String> {
    let (mut unscored, mut all, mut first_reason) = (0, 0, None);
    for trial in trials {
        all += 1;
        if trial.verdicts().is_none() {
            unscored += 1;
            first_reason = first_reason.or(trial.unscored.as_ref());
        }
    }
    let reason = first_reason.and_then(|unscored| unscored.message.lines().next());
    (unscored > 0).then(|| {
        format!(
            "skipped: {unscored} of {all} perturbed pairs with no verdict before or after{}",
            reason.map_or_else(String::new, |reason| format!(" ({reason})"))
        )
    })
}
