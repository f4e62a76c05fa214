//! Verbosity bias: preference for the longer response beyond that of the labels.

use std::cmp::Ordering;

use super::audit_verdicts::AuditVerdicts;
use super::length_control::length_controlled_win_rates;
use crate::analysis::audit::probe::Probe;
use crate::analysis::audit::result::{
    AuditEstimate, ClusteredValues, Finding, FindingOutcome, MeasureUnit, names,
};
use crate::analysis::audit::rules::{Conclusion, IntervalRule};
use crate::analysis::verdicts::PairVerdict;
use crate::data::labels::ScoreTarget;

/// The rule for the proportion that the longer response wins, judge minus labels. `{longer}` is the
/// proportion of the judge.
const RULE: IntervalRule = IntervalRule {
    expected: 0.0,
    tolerance: 0.10,
    above: (
        FindingOutcome::Biased,
        "verbosity bias: the longer answer wins more often than by the labels, by {value}",
    ),
    below: (
        FindingOutcome::Biased,
        "bias for brevity: the longer answer wins less often than by the labels, {value}",
    ),
    equivalent: (
        FindingOutcome::Sound,
        "no sign of verbosity bias: the longer answer wins {longer}; judge less labels {value}",
    ),
    unclear: "too few pairs to tell a verbosity bias: judge less labels {value}",
};

/// A pair whose responses differ in length. Wins of the longer one are 1, ½ or 0.
struct UnequalPair<'a> {
    cluster: &'a str,
    /// Win by the verdict.
    judge: f64,
    /// Win by the label.
    label: Option<f64>,
}

/// Measures verbosity bias and win rates at equal length.
pub(super) fn probe_verbosity(evidence: &AuditVerdicts<'_>) -> Finding {
    let mut unequal = evidence
        .scored()
        .filter(|(verdict, _)| verdict.words[0] != verdict.words[1])
        .peekable();
    if unequal.peek().is_none() {
        let why = "the two answers of every pair are as long as each other";
        return Finding::not_run(Probe::Verbosity, why);
    }
    let pairs: Vec<UnequalPair<'_>> = unequal
        .filter_map(|(verdict, label)| {
            Some(UnequalPair {
                cluster: &verdict.cluster,
                judge: longer_wins(verdict, verdict.order(ScoreTarget::Final)?),
                label: label.map(|label| longer_wins(verdict, label)),
            })
        })
        .collect();
    let mean = |unit, value: fn(&UnequalPair<'_>) -> Option<f64>| {
        let values = pairs.iter().filter_map(|p| Some((p.cluster, value(p)?)));
        ClusteredValues::new(values).mean(unit, evidence.bootstrap)
    };
    let longer = mean(MeasureUnit::Share, |p| Some(p.judge));
    let mut measures = vec![names::LONGER_PREFERRED.measure(longer.clone())];
    let is_labelled = pairs.iter().any(|p| p.label.is_some());
    let gap = if is_labelled {
        let gap = mean(MeasureUnit::ShareDifference, |p| Some(p.judge - p.label?));
        let judge = mean(MeasureUnit::Share, |p| p.label.map(|_| p.judge));
        let label = mean(MeasureUnit::Share, |p| p.label);
        let labelled = names::LONGER_LABELLED.measure(judge);
        measures.push(labelled.with_control("labels", label, Some(gap.clone())));
        gap
    } else {
        AuditEstimate::undefined("no label says which response is better")
    };
    measures.push(names::LONGER_GAP.measure(gap.clone()));
    let controlled = length_controlled_win_rates(evidence);
    measures.extend(controlled.measures);
    let mut notes: Vec<String> = controlled.note.into_iter().collect();
    if !is_labelled {
        notes.push(
            "without labels nobody knows whether the longer answers are the better ones".into(),
        );
    }
    let conclusion = conclude(&longer, &gap, is_labelled);
    Finding {
        probe: Probe::Verbosity,
        outcome: conclusion.outcome,
        words: conclusion.sentence,
        measures,
        notes,
    }
}

fn conclude(longer: &AuditEstimate, gap: &AuditEstimate, is_labelled: bool) -> Conclusion {
    let longer = longer.describe(MeasureUnit::Share);
    if !is_labelled {
        return Conclusion::unclear(format!(
            "the longer answer wins {longer}; no labels say whether it should"
        ));
    }
    let mut conclusion = RULE.conclude(gap, MeasureUnit::ShareDifference);
    conclusion.sentence = conclusion.sentence.replace("{longer}", &longer);
    conclusion
}

/// Win of the longer response: 1, ½ or 0.
fn longer_wins(verdict: &PairVerdict, order: Ordering) -> f64 {
    let [a, b] = verdict.words;
    match order {
        Ordering::Equal => 0.5,
        preferred => f64::from(u8::from(preferred == a.cmp(&b))),
    }
}
