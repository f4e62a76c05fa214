//! Verbosity bias: preference for the longer response, compared with the labels.

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

/// The rule for the difference between judge and labels in the proportion of pairs that the longer
/// response wins. `{longer}` is the proportion by the judge.
const RULE: IntervalRule = IntervalRule {
    expected: 0.0,
    tolerance: 0.10,
    above: (
        FindingOutcome::Biased,
        "verbosity bias: the longer response wins more often than by the labels, by {value}",
    ),
    below: (
        FindingOutcome::Biased,
        "brevity bias: the longer response wins less often than by the labels, by {negated}",
    ),
    equivalent: (
        FindingOutcome::Sound,
        "no verbosity bias found: the longer response wins {longer}; judge − labels {value}",
    ),
    unclear: "too few pairs to detect verbosity bias: judge − labels {value}",
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
pub(super) fn probe_verbosity(audit_verdicts: &AuditVerdicts<'_>) -> Finding {
    let mut unequal = audit_verdicts
        .scored_pairs()
        .filter(|(verdict, _)| verdict.words[0] != verdict.words[1])
        .peekable();
    if unequal.peek().is_none() {
        let reason = "both responses of every pair have the same length";
        return Finding::not_run(Probe::Verbosity, reason);
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
        ClusteredValues::new(values).estimate_mean(unit, audit_verdicts.bootstrap)
    };
    let longer = mean(MeasureUnit::Proportion, |p| Some(p.judge));
    let mut measures = vec![names::LONGER_PREFERRED.measure(longer.clone())];
    let is_labelled = pairs.iter().any(|p| p.label.is_some());
    let gap = if is_labelled {
        let gap = mean(MeasureUnit::ProportionDifference, |p| Some(p.judge - p.label?));
        let judge = mean(MeasureUnit::Proportion, |p| p.label.map(|_| p.judge));
        let label = mean(MeasureUnit::Proportion, |p| p.label);
        let labelled = names::LONGER_LABELLED.measure(judge);
        measures.push(labelled.with_control("labels", label, Some(gap.clone())));
        gap
    } else {
        AuditEstimate::undefined("no label prefers a response")
    };
    measures.push(names::LONGER_GAP.measure(gap.clone()));
    let controlled = length_controlled_win_rates(audit_verdicts);
    measures.extend(controlled.measures);
    let mut notes: Vec<String> = controlled.note.into_iter().collect();
    if !is_labelled {
        notes.push(
            "without labels, it is unknown whether the longer responses are the better ones".into(),
        );
    }
    let conclusion = conclude(&longer, &gap, is_labelled);
    Finding {
        probe: Probe::Verbosity,
        outcome: conclusion.outcome,
        summary: conclusion.sentence,
        worst: None,
        measures,
        notes,
    }
}

fn conclude(longer: &AuditEstimate, gap: &AuditEstimate, is_labelled: bool) -> Conclusion {
    let longer = longer.describe(MeasureUnit::Proportion);
    if !is_labelled {
        return Conclusion::unclear(format!(
            "the longer response wins {longer}; verbosity bias needs labels"
        ));
    }
    let mut conclusion = RULE.conclude(gap, MeasureUnit::ProportionDifference);
    conclusion.sentence = conclusion.sentence.replace("{longer}", &longer);
    conclusion
}

/// Returns the win of the longer response: 1, ½ or 0.
fn longer_wins(verdict: &PairVerdict, order: Ordering) -> f64 {
    let [a, b] = verdict.words;
    match order {
        Ordering::Equal => 0.5,
        preferred => f64::from(u8::from(preferred == a.cmp(&b))),
    }
}
