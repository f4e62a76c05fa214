//! Symmetry of the presentation orders: a response has the same score wherever it is shown, and the
//! verdict is the mean of all orders.

use super::audit_verdicts::AuditVerdicts;
use crate::analysis::audit::probe::Probe;
use crate::analysis::audit::result::{
    ClusteredValues, Finding, FindingOutcome, MeasureUnit, names,
};
use crate::analysis::audit::rules::IntervalRule;
use crate::analysis::verdicts::PairVerdict;
use crate::data::labels::ScoreTarget;

/// The rule for the mean score shift (shown first minus shown second). Points.
const RULE: IntervalRule = IntervalRule {
    expected: 0.0,
    tolerance: 0.25,
    above: (FindingOutcome::Biased, "a response scores higher when shown first, by {value}"),
    below: (FindingOutcome::Biased, "a response scores lower when shown first, by {negated}"),
    equivalent: (
        FindingOutcome::Sound,
        "no effect of the position on scores found: first − second {value}",
    ),
    unclear: "too few pairs to detect a score shift with the position: {value}",
};

/// Compares the presentation orders of each pair.
pub(super) fn probe_symmetry(audit_verdicts: &AuditVerdicts<'_>) -> Finding {
    let in_both_orders: Vec<&PairVerdict> = audit_verdicts
        .scored_pairs()
        .map(|(verdict, _)| verdict)
        .filter(|verdict| verdict.is_in_both_orders())
        .collect();
    if in_both_orders.is_empty() {
        let reason = "no pair was judged in both presentation orders";
        return Finding::not_run(Probe::Symmetry, reason);
    }
    let mean_shift = |transform: fn(f64) -> f64| {
        let shifts = in_both_orders.iter().flat_map(|v| {
            let shifts = position_shifts(v).into_iter();
            shifts.map(|shift| (v.cluster.as_str(), transform(shift)))
        });
        ClusteredValues::new(shifts).estimate_mean(MeasureUnit::Points, audit_verdicts.bootstrap)
    };
    let (signed, absolute) = (mean_shift(|shift| shift), mean_shift(f64::abs));
    let combined =
        in_both_orders.iter().filter_map(|v| Some((v.cluster.as_str(), is_mean_of_orders(v)?)));
    let combined = ClusteredValues::new(combined)
        .estimate_mean(MeasureUnit::Proportion, audit_verdicts.bootstrap);
    let mut conclusion = RULE.conclude(&signed, MeasureUnit::Points);
    if combined.value.is_none_or(|proportion| proportion < 1.0) {
        conclusion.outcome = FindingOutcome::Biased;
    }
    if let Some(proportion) = combined.value.filter(|proportion| *proportion < 1.0) {
        let percent = 100.0 * (1.0 - proportion);
        let edited = format!(
            "; {percent:.1} % of verdicts are NOT the mean of their presentation orders: the records were edited"
        );
        conclusion.sentence.push_str(&edited);
    }
    Finding {
        probe: Probe::Symmetry,
        outcome: conclusion.outcome,
        summary: conclusion.sentence,
        worst: None,
        measures: vec![
            names::SIGNED_SHIFT.measure(signed),
            names::ABSOLUTE_SHIFT.measure(absolute),
            names::COMBINED_IS_MEAN.measure(combined),
        ],
        notes: Vec::new(),
    }
}

/// Returns the score of each response when shown before the other minus its score when shown after
/// it. A list has several orders of each kind: their mean counts.
fn position_shifts(verdict: &PairVerdict) -> Vec<f64> {
    match (mean_scores(verdict, false), mean_scores(verdict, true)) {
        (Some([a, b]), Some([a_second, b_first])) => vec![a - a_second, b_first - b],
        _ => Vec::new(),
    }
}

/// Returns the mean scores over the orders of one kind; `None` if there is none.
fn mean_scores(verdict: &PairVerdict, swapped: bool) -> Option<[f64; 2]> {
    let n = verdict.orders_with(swapped).count();
    let mean = |r: usize| verdict.orders_with(swapped).map(|s| s[r]).sum::<f64>() / n as f64;
    (n > 0).then(|| [0, 1].map(mean))
}

/// Returns 1 if the combined scores are the means of the presentation orders, else 0.
fn is_mean_of_orders(verdict: &PairVerdict) -> Option<f64> {
    let combined = verdict.scores.as_ref()?.get(&ScoreTarget::Final)?;
    let n = verdict.orders.len() as f64;
    let mean = |r: usize| verdict.orders.iter().map(|o| o.scores[r]).sum::<f64>() / n;
    let is_mean = [0, 1].iter().all(|r| (combined[*r] - mean(*r)).abs() < 1e-3);
    Some(f64::from(u8::from(is_mean)))
}
