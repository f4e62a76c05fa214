//! Position bias: preference for the response shown first, and flips with the presentation order.

use std::cmp::Ordering;

use acem3_conclusion::compare_scores;

use super::audit_verdicts::AuditVerdicts;
use crate::analysis::audit::probe::Probe;
use crate::analysis::audit::result::{
    AuditEstimate, ClusteredValues, Finding, FindingOutcome, MeasureUnit, names,
};
use crate::analysis::audit::rules::{Conclusion, IntervalRule};
use crate::analysis::verdicts::PairVerdict;
use crate::statistics::{Bootstrap, Defined, MIN_CLUSTERS, mean};
use crate::support::text::format_count;

/// The rule for the proportion of presentations that the response shown first wins.
const RULE: IntervalRule = IntervalRule {
    expected: 0.5,
    tolerance: 0.10,
    above: (
        FindingOutcome::Biased,
        "position bias: the response shown first wins {value} of presentations",
    ),
    below: (
        FindingOutcome::Biased,
        "position bias: the response shown first wins only {value} of presentations",
    ),
    equivalent: (
        FindingOutcome::Sound,
        "neither position is preferred: the response shown first wins {value} of presentations",
    ),
    unclear: "too few pairs to detect position bias: the response shown first wins {value} of presentations",
};

/// Largest flip rate that does not matter. A judge that prefers the first position in a fifth of its
/// pairs flips these pairs, and its first position wins 60 % of presentations, the tolerance of
/// [`RULE`]. If it prefers the second position as often, it flips as many pairs, and [`RULE`] finds
/// nothing.
const TOLERATED_FLIPS: f64 = 0.20;

/// The presentations of a pair that show the same response first: one of a pair, several of a list.
struct Presentation<'a> {
    cluster: &'a str,
    /// Win of the response shown first: 1, ½ or 0, or the mean over several presentations.
    first_wins: f64,
    /// The better response by the label, if one is better.
    better: Option<BetterResponse>,
}

/// The better response of a presentation by its label.
struct BetterResponse {
    is_first: bool,
    /// Win of the better response: 1, ½ or 0, or the mean over several presentations.
    win: f64,
}

/// Measures position bias and flips.
pub(super) fn probe_position(audit_verdicts: &AuditVerdicts<'_>) -> Finding {
    let presentations: Vec<Presentation<'_>> = audit_verdicts
        .scored_pairs()
        .flat_map(|(verdict, label)| Presentation::all(verdict, label))
        .collect();
    if presentations.is_empty() {
        return Finding::not_run(Probe::Position, "the records have no presentation order");
    }
    let labelled: Vec<&Presentation<'_>> =
        presentations.iter().filter(|presentation| presentation.better.is_some()).collect();
    let first = first_preferred(audit_verdicts);
    let flips = ClusteredValues::new(audit_verdicts.scored_pairs().filter_map(|(v, _)| flip(v)));
    let flips = flips.estimate_mean(MeasureUnit::Proportion, audit_verdicts.bootstrap);
    let accuracy = |is_first: bool| {
        let hits = labelled.iter();
        let hits = hits.filter_map(|p| Some((p.cluster, p.better_win_at(is_first)?)));
        let values = ClusteredValues::new(hits);
        values.estimate_mean(MeasureUnit::Proportion, audit_verdicts.bootstrap)
    };
    let accuracy_first = names::ACCURACY_FIRST.measure(accuracy(true));
    let mut notes = Vec::new();
    if flips.n == 0 {
        notes.push("no flip rate: every pair was judged in one presentation order".to_owned());
    }
    if labelled.is_empty() {
        notes.push("no accuracy by position: no label prefers a response".into());
    }
    let conclusion = conclude(&first, &flips);
    Finding {
        probe: Probe::Position,
        outcome: conclusion.outcome,
        summary: conclusion.sentence,
        worst: None,
        measures: vec![
            names::FIRST_PREFERRED.measure(first),
            names::FLIP_RATE.measure(flips),
            accuracy_first.with_control("better response second", accuracy(false), None),
            names::ACCURACY_GAP.measure(accuracy_gap(&labelled, audit_verdicts.bootstrap)),
        ],
        notes,
    }
}

/// Estimates the proportion of presentations that the response shown first wins, over pairs judged
/// in both orders. With one order, a preference for the first response cannot be distinguished from
/// a better response.
fn first_preferred(audit_verdicts: &AuditVerdicts<'_>) -> AuditEstimate {
    let in_both_orders = audit_verdicts.scored_pairs().filter(|(v, _)| v.is_in_both_orders());
    let presentations = in_both_orders.flat_map(|(v, _)| Presentation::all(v, None));
    let wins = ClusteredValues::new(presentations.map(|p| (p.cluster, p.first_wins)));
    if wins.is_empty() {
        return AuditEstimate::undefined("every pair was judged in one presentation order");
    }
    wins.estimate_mean(MeasureUnit::Proportion, audit_verdicts.bootstrap)
}

/// Concludes from the preference for a position and from the flips: the worse of the two decides.
fn conclude(first: &AuditEstimate, flips: &AuditEstimate) -> Conclusion {
    if first.value.is_none() {
        return Conclusion::unclear(
            "position bias unknown: every pair was judged in one presentation order",
        );
    }
    let preference = RULE.conclude(first, MeasureUnit::Proportion);
    let rate = flips.describe(MeasureUnit::Proportion);
    let low = flips.interval.map_or(flips.value.filter(|_| flips.is_constant), |i| Some(i[0]));
    let has_enough_images = flips.images >= MIN_CLUSTERS;
    let (outcome, text) = if has_enough_images && low.is_some_and(|low| low > TOLERATED_FLIPS) {
        let text = "verdicts depend on the presentation order: they flip in {rate} of pairs";
        (FindingOutcome::Biased, text)
    } else if flips.is_at_most(TOLERATED_FLIPS) {
        (FindingOutcome::Sound, "verdicts flip in {rate} of pairs")
    } else {
        let text = "too few pairs to exclude frequent flips: verdicts flip in {rate} of pairs";
        (FindingOutcome::Unclear, text)
    };
    let text = text.replace("{rate}", &rate);
    let rank = |outcome: FindingOutcome| match outcome {
        FindingOutcome::Biased => 2,
        FindingOutcome::Unclear | FindingOutcome::NotRun => 1,
        FindingOutcome::Sound => 0,
    };
    // The sentence begins with what decides.
    if rank(outcome) > rank(preference.outcome) {
        Conclusion::new(outcome, format!("{text}; {}", preference.sentence))
    } else {
        Conclusion::new(preference.outcome, format!("{}; {text}", preference.sentence))
    }
}

/// Returns the cluster of a pair, and 1 if its two orders disagree, else 0. A list has several orders
/// with each of the two responses first: the proportion of their combinations that disagree.
fn flip(verdict: &PairVerdict) -> Option<(&str, f64)> {
    let swapped = || verdict.orders_with(true).map(compare_scores);
    let differ = |plain: Ordering| {
        swapped().map(move |swapped| f64::from(u8::from(plain != swapped))).collect::<Vec<_>>()
    };
    let all: Vec<f64> = verdict.orders_with(false).map(compare_scores).flat_map(differ).collect();
    (!all.is_empty())
        .then(|| (verdict.cluster.as_str(), all.iter().sum::<f64>() / all.len() as f64))
}

impl<'a> Presentation<'a> {
    /// Returns the presentations with either response first.
    fn all(verdict: &'a PairVerdict, label: Option<Ordering>) -> impl Iterator<Item = Self> {
        [false, true].into_iter().filter_map(move |swapped| Self::new(verdict, swapped, label))
    }

    fn new(verdict: &'a PairVerdict, swapped: bool, label: Option<Ordering>) -> Option<Self> {
        let n = verdict.orders_with(swapped).count();
        let win = |winner: Ordering| {
            let wins = verdict.orders_with(swapped).map(|scores| match compare_scores(scores) {
                Ordering::Equal => 0.5,
                preferred => f64::from(u8::from(preferred == winner)),
            });
            wins.sum::<f64>() / n as f64
        };
        let first = if swapped { Ordering::Less } else { Ordering::Greater };
        let better = label.filter(|label| *label != Ordering::Equal);
        (n > 0).then(|| Self {
            cluster: &verdict.cluster,
            first_wins: win(first),
            better: better
                .map(|label| BetterResponse { is_first: label == first, win: win(label) }),
        })
    }

    /// Returns the win of the better response, if it is shown in this position.
    fn better_win_at(&self, is_first: bool) -> Option<f64> {
        let better = self.better.as_ref();
        better.filter(|b| b.is_first == is_first).map(|b| b.win)
    }
}

/// Estimates the accuracy with the better response first minus the accuracy with it second.
fn accuracy_gap(labelled: &[&Presentation<'_>], bootstrap: Bootstrap) -> AuditEstimate {
    if labelled.is_empty() {
        return AuditEstimate::undefined("no label prefers a response");
    }
    let clusters: Vec<String> = labelled.iter().map(|p| p.cluster.to_owned()).collect();
    let hits = |is_first: bool| -> Vec<Option<f64>> {
        labelled.iter().map(|p| p.better_win_at(is_first)).collect()
    };
    let (first, second) = (hits(true), hits(false));
    for (position, hits) in [("first", &first), ("second", &second)] {
        if hits.iter().flatten().next().is_none() {
            let n = format_count(labelled.len() as u64, "presentation");
            return AuditEstimate::undefined(format!(
                "the better response is {position} in none of {n}"
            ));
        }
    }
    let difference =
        |weights: &[f64]| -> Defined<f64> { Ok(mean(&first, weights)? - mean(&second, weights)?) };
    ClusteredValues::estimate_statistic(
        &clusters,
        MeasureUnit::ProportionDifference,
        bootstrap,
        difference,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proportion(value: f64, interval: [f64; 2]) -> AuditEstimate {
        let interval = Some(interval);
        AuditEstimate { value: Some(value), interval, n: 100, images: 100, ..Default::default() }
    }

    #[test]
    fn frequent_flips_are_biased_although_no_position_is_preferred() {
        let balanced = proportion(0.5, [0.46, 0.54]);
        let outcome = |flips: &AuditEstimate| conclude(&balanced, flips);
        let frequent = outcome(&proportion(0.3, [0.22, 0.39]));
        assert_eq!(frequent.outcome, FindingOutcome::Biased);
        assert!(frequent.sentence.starts_with("verdicts depend on the presentation order"));
        assert_eq!(outcome(&proportion(0.1, [0.05, 0.17])).outcome, FindingOutcome::Sound);
        assert_eq!(outcome(&proportion(0.2, [0.1, 0.3])).outcome, FindingOutcome::Unclear);
        let few = AuditEstimate { images: 3, ..proportion(0.5, [0.4, 0.6]) };
        assert_eq!(outcome(&few).outcome, FindingOutcome::Unclear);
    }

    #[test]
    fn preferred_position_is_biased_although_flips_are_rare() {
        let conclusion = conclude(&proportion(0.56, [0.52, 0.6]), &proportion(0.1, [0.05, 0.17]));
        assert_eq!(conclusion.outcome, FindingOutcome::Biased);
        assert!(conclusion.sentence.starts_with("position bias"), "{}", conclusion.sentence);
    }
}
