//! Do mirrored verdicts sum up: the same response gets the same score in either place, the two
//! presentations make the combined verdict, and a response ties with itself.

use super::probe::Probe;
use super::result::{AuditMeasure, Finding, FindingOutcome, MeasureUnit};
use super::trial::differ;
use crate::analysis::audit::audit_estimate::{AuditEstimate, ClusteredValues, IntervalPosition};
use crate::analysis::audit::audit_verdicts::AuditVerdicts;
use crate::analysis::verdicts::PairVerdict;
use crate::data::labels::ScoreTarget;

/// The name of the mean absolute shift in files.
pub(super) const SHIFT: &str = "shift";
/// The name of the share of identical responses that do not tie.
pub(super) const NOT_TIED: &str = "not_tied";
/// The name of the share of verdicts that are the mean of their presentations.
const SUMS_UP: &str = "sums_up";

/// So many presentations of identical responses that do not tie would have been seen. Share.
const RARE: f64 = 0.25;
/// A shift by the place that does not matter. Points.
const TOLERABLE: f64 = 0.25;

/// Looks whether the two presentations of a pair mirror each other.
pub(super) fn symmetry(evidence: &AuditVerdicts<'_>) -> Finding {
    let both: Vec<&PairVerdict> = evidence
        .scored()
        .map(|(verdict, _)| verdict)
        .filter(|verdict| verdict.orders.len() == 2)
        .collect();
    if both.is_empty() {
        let why = "no pair was judged in both orders";
        return Finding::not_run(Probe::Symmetry, why);
    }
    let bootstrap = evidence.bootstrap;
    let moved = |of: fn(f64) -> f64| {
        let shifts = both.iter().flat_map(|v| {
            let each = shifts(v);
            each.into_iter()
                .map(|shift| (v.cluster.as_str(), of(shift)))
        });
        ClusteredValues::new(shifts).mean(MeasureUnit::Points, bootstrap)
    };
    let (signed, size) = (moved(|shift| shift), moved(f64::abs));
    let checked = both
        .iter()
        .filter_map(|v| Some((v.cluster.as_str(), sums_up(v)?)));
    let sums = ClusteredValues::new(checked).mean(MeasureUnit::Share, bootstrap);
    let sign = signed.sign(0.0, TOLERABLE);
    let outcome = match sign {
        _ if sums.value.is_none_or(|share| share < 1.0) => FindingOutcome::Biased,
        IntervalPosition::Above | IntervalPosition::Below => FindingOutcome::Biased,
        IntervalPosition::There => FindingOutcome::Sound,
        IntervalPosition::Unclear => FindingOutcome::Unclear,
    };
    let shift = signed.words(MeasureUnit::Points);
    let mut words = match sign {
        IntervalPosition::Above => format!("a response scores higher when shown first, by {shift}"),
        IntervalPosition::Below => {
            let less = signed.opposite().words(MeasureUnit::Points);
            format!("a response scores lower when shown first, by {less}")
        }
        IntervalPosition::There => {
            format!("a response scores the same in either place: first less second {shift}")
        }
        IntervalPosition::Unclear => {
            format!("too few pairs to tell whether the place moves scores: {shift}")
        }
    };
    if let Some(share) = sums.value.filter(|share| *share < 1.0) {
        let percent = 100.0 * (1.0 - share);
        let changed =
            "of the verdicts are NOT the mean of their presentations: the records were changed";
        words = format!("{words}; {percent:.1} % {changed}");
    }
    Finding {
        probe: Probe::Symmetry,
        outcome,
        words,
        measures: vec![
            AuditMeasure::new(
                "signed_shift",
                "score first less second",
                MeasureUnit::Points,
                signed,
            ),
            AuditMeasure::new(
                SHIFT,
                "score moves with the place",
                MeasureUnit::Points,
                size,
            ),
            AuditMeasure::new(
                SUMS_UP,
                "verdict is its presentations' mean",
                MeasureUnit::Share,
                sums,
            ),
        ],
        notes: Vec::new(),
    }
}

/// Of each response: its score when shown first, less that when shown second.
fn shifts(verdict: &PairVerdict) -> Vec<f64> {
    let of = |swapped: bool| verdict.orders.iter().find(|o| o.swapped == swapped);
    match (of(false), of(true)) {
        (Some(plain), Some(swapped)) => {
            let [a, b] = plain.scores;
            let [a_second, b_first] = swapped.scores;
            vec![a - a_second, b_first - b]
        }
        _ => Vec::new(),
    }
}

/// Whether the combined scores are the means of those of the presentations, 1 or 0.
fn sums_up(verdict: &PairVerdict) -> Option<f64> {
    let combined = verdict.scores.as_ref()?.get(&ScoreTarget::Final)?;
    let n = verdict.orders.len() as f64;
    let mean = |r: usize| verdict.orders.iter().map(|o| o.scores[r]).sum::<f64>() / n;
    let same = [0, 1]
        .iter()
        .all(|r| (combined[*r] - mean(*r)).abs() < 1e-3);
    Some(f64::from(u8::from(same)))
}

/// Looks whether responses that are the same, byte by byte, tie in each presentation.
///
/// A verdict combined over both orders ties by its construction, whatever the judge does; a single
/// presentation does not.
pub(super) fn self_consistency(evidence: &AuditVerdicts<'_>) -> Finding {
    let probe = Probe::SelfConsistency;
    let presented = |identical: bool| {
        let pairs = evidence
            .scored()
            .filter(move |(v, _)| v.identical == identical);
        let each = pairs.flat_map(|(v, _)| {
            let apart = |[a, b]: [f64; 2]| f64::from(u8::from(differ(a, b)));
            v.orders
                .iter()
                .map(move |o| (v.cluster.as_str(), apart(o.scores)))
        });
        ClusteredValues::new(each).mean(MeasureUnit::Share, evidence.bootstrap)
    };
    let apart = presented(true);
    if apart.n == 0 {
        let why = "no pair has two responses that are the same, byte by byte; the probe `identical` \
                   makes such pairs from cases";
        return Finding::not_run(probe, why);
    }
    let other = presented(false);
    let (outcome, words) = not_tied(&apart, other.value);
    let measure = AuditMeasure::new(NOT_TIED, "identical, not tied", MeasureUnit::Share, apart);
    Finding {
        probe,
        outcome,
        words,
        measures: vec![measure.against("pairs that differ", other, None)],
        notes: Vec::new(),
    }
}

/// What it means that so many presentations of identical responses do not tie, beside those of others.
pub(super) fn not_tied(apart: &AuditEstimate, others: Option<f64>) -> (FindingOutcome, String) {
    let share = apart.words(MeasureUnit::Share);
    if apart.value.is_none_or(|value| value > 0.0) {
        let words = format!(
            "noise: the same answer twice gets different scores in {share} of presentations"
        );
        return (FindingOutcome::Biased, words);
    }
    if others.is_some_and(|value| value <= 0.0) {
        let words = "identical answers tie, but so do all others: that tells nothing".to_owned();
        return (FindingOutcome::Unclear, words);
    }
    if apart.sign(0.0, RARE) == IntervalPosition::There {
        let words = format!("identical answers tie: {share} of presentations tell them apart");
        return (FindingOutcome::Sound, words);
    }
    let words = format!("identical answers tie, but they are few: {share} told apart");
    (FindingOutcome::Unclear, words)
}
