//! The finding of a probe that judges again, from its row in the table and its trials.

use super::probe_table::{JudgementRule, MeasureScope, TrialProbe, trial_probe};
use super::trial_measure::LabelledTrial;
use super::trial_set::TrialSet;
use crate::analysis::audit::perturbations::Perturbation;
use crate::analysis::audit::probe::Probe;
use crate::analysis::audit::result::{AuditMeasure, AuditTrial, Finding};
use crate::analysis::audit::rules::{Conclusion, conclude_identical, conclude_image};
use crate::statistics::Bootstrap;

/// Pairs that a probe skipped.
pub(crate) struct SkippedPairs<'a> {
    /// Number of responses without a word for an error, by error.
    pub(crate) not_applicable: Vec<(Perturbation, usize)>,
    /// Number of pairs or responses skipped for other reasons.
    pub(crate) reasons: Vec<(&'a str, usize)>,
}

/// Evaluates the trials of a probe. Probes that need verdicts only have no trials and do not run.
pub(crate) fn evaluate(
    probe: Probe,
    trials: Vec<LabelledTrial<'_>>,
    skipped: &SkippedPairs<'_>,
    bootstrap: Bootstrap,
) -> Finding {
    let unscored = unscored_note(trials.iter().map(|labelled| labelled.trial));
    let mut finding = match trial_probe(probe) {
        Some(row) => find(probe, row, &TrialSet::new(trials, bootstrap)),
        None => Finding::not_run(probe, "it judges nothing"),
    };
    if !finding.measures.is_empty() {
        finding
            .notes
            .extend(not_applicable_note(&skipped.not_applicable));
    }
    let reasons = skipped.reasons.iter();
    finding
        .notes
        .extend(reasons.map(|(why, n)| format!("left out: {n} {why}")));
    finding.notes.extend(unscored);
    finding
}

fn find(probe: Probe, row: &TrialProbe, trials: &TrialSet<'_>) -> Finding {
    let tested: Vec<_> = Perturbation::of_probe(probe)
        .filter(|p| p.is_tested())
        .collect();
    let measures = compute(row, trials, &tested);
    let has_measure = |perturbation: &Perturbation| {
        let suffix = format!(":{}", perturbation.key());
        measures
            .iter()
            .any(|measure| measure.key.ends_with(&suffix))
    };
    let is_missing = !row.required.is_empty() && !row.required.iter().any(has_measure);
    let conclusion = conclude(&row.rule, &measures, &tested).filter(|_| !is_missing);
    let Some(conclusion) = conclusion else {
        return Finding::not_run(probe, row.not_run);
    };
    let missing = row.missing.filter(|(p, _)| !has_measure(p));
    Finding {
        probe,
        outcome: conclusion.outcome,
        words: conclusion.sentence,
        notes: missing
            .into_iter()
            .map(|(_, note)| note.to_owned())
            .collect(),
        measures,
    }
}

/// The measures of a row, as far as trials have values for them.
fn compute(row: &TrialProbe, trials: &TrialSet<'_>, tested: &[Perturbation]) -> Vec<AuditMeasure> {
    let mut measures = Vec::new();
    for scope in row.measures {
        match scope {
            MeasureScope::All(measure) => measures.extend(trials.measure(measure, tested)),
            MeasureScope::Each(each) => {
                for perturbation in tested {
                    let of_one = each.iter().filter_map(|measure| {
                        Some(AuditMeasure {
                            key: measure.name.key_for(&perturbation.key()),
                            title: measure.name.title_for(perturbation.title()),
                            ..trials.measure(measure, &[*perturbation])?
                        })
                    });
                    measures.extend(of_one);
                }
            }
        }
    }
    measures
}

/// Applies the rule of a row. `None` if its measures are missing.
fn conclude(
    rule: &JudgementRule,
    measures: &[AuditMeasure],
    tested: &[Perturbation],
) -> Option<Conclusion> {
    let find = |key: &str| measures.iter().find(|measure| measure.key == key);
    let tested = tested.iter().copied();
    match rule {
        JudgementRule::Identical(name) => {
            let measure = find(name.key)?;
            let others = measure.control.as_ref().and_then(|control| control.value);
            Some(conclude_identical(&measure.reading, others))
        }
        JudgementRule::Interval {
            measure,
            rule,
            other,
            suffix,
        } => {
            let mut conclusion = rule.conclude(find(measure.key)?.net(), measure.unit);
            let other = find(other.key)?.reading.describe(other.unit);
            conclusion.sentence += &suffix.replace("{other}", &other);
            Some(conclusion)
        }
        JudgementRule::Image => Some(conclude_image(measures, tested)),
        JudgementRule::Injection(rule) => {
            (!measures.is_empty()).then(|| rule.conclude(measures, tested))
        }
    }
}

/// How many responses have no word for an error, by error.
fn not_applicable_note(counts: &[(Perturbation, usize)]) -> Option<String> {
    let counts: Vec<String> = counts
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(perturbation, n)| format!("{} {n}", perturbation.title()))
        .collect();
    (!counts.is_empty()).then(|| {
        format!(
            "answers that say nothing of a kind, and were left out of it: {}",
            counts.join(", ")
        )
    })
}

/// How many trials have no verdict, with the first reason; `None` if all have one.
fn unscored_note<'a>(trials: impl Iterator<Item = &'a AuditTrial>) -> Option<String> {
    let (mut unscored, mut all, mut why) = (0, 0, None);
    for trial in trials {
        all += 1;
        if trial.verdicts().is_none() {
            unscored += 1;
            why = why.or(trial.unscored.as_ref());
        }
    }
    let why = why.and_then(|unscored| unscored.message.lines().next());
    (unscored > 0).then(|| {
        format!(
            "{unscored} of {all} changed pairs have no verdict before or after, and are left out{}",
            why.map_or_else(String::new, |why| format!(" ({why})"))
        )
    })
}
