//! Does the place decide: is what is shown first preferred, and does the verdict change with the order.

use std::cmp::Ordering;

use super::probe::Probe;
use super::result::{AuditMeasure, Finding, FindingOutcome, MeasureUnit};
use crate::analysis::audit::audit_estimate::{AuditEstimate, ClusteredValues, IntervalPosition};
use crate::analysis::audit::audit_verdicts::AuditVerdicts;
use crate::analysis::verdicts::{OrderScores, PairVerdict};
use crate::statistics::{Defined, mean};
use crate::support::text::plural;
use acem3_conclusion::compare;

/// The name of the flip rate in files.
pub(super) const FLIP_RATE: &str = "flip_rate";
/// The name of the difference of accuracies by place.
pub(super) const GAP: &str = "accuracy_gap";
const FIRST: &str = "first_preferred";

/// A preference that strays no further from even is none. Share.
const TOLERABLE: f64 = 0.10;

/// One presentation of a pair.
struct Presentation<'a> {
    cluster: &'a str,
    /// How far what was shown first won: 1, ½ or 0.
    first: f64,
    /// Whether the better response was shown first, and how far it won; where one is better.
    better: Option<(bool, f64)>,
}

/// Looks for a preference for a place.
pub(super) fn find(evidence: &AuditVerdicts<'_>) -> Finding {
    let bootstrap = evidence.bootstrap;
    let flips = ClusteredValues::new(evidence.scored().filter_map(|(v, _)| flip(v)));
    let seen: Vec<Presentation<'_>> = evidence
        .scored()
        .flat_map(|(verdict, label)| verdict.orders.iter().map(move |o| see(verdict, o, label)))
        .collect();
    if seen.is_empty() {
        return Finding::not_run(Probe::Position, "the records tell no presentation order");
    }
    let first = first_preferred(evidence);
    let flips = flips.mean(MeasureUnit::Share, bootstrap);
    let known: Vec<&Presentation<'_>> = seen.iter().filter(|s| s.better.is_some()).collect();
    let accuracy = |place: bool| {
        let hit =
            |s: &&&Presentation<'_>| s.better.filter(|(is, _)| *is == place).map(|(_, won)| won);
        let values = known.iter().filter_map(|s| Some((s.cluster, hit(&s)?)));
        ClusteredValues::new(values).mean(MeasureUnit::Share, bootstrap)
    };
    let mut measures = vec![
        AuditMeasure::new(
            FIRST,
            "shown first preferred",
            MeasureUnit::Share,
            first.clone(),
        ),
        AuditMeasure::new(
            FLIP_RATE,
            "verdict flips with the order",
            MeasureUnit::Share,
            flips.clone(),
        ),
    ];
    let gap = gap(evidence, &known);
    let (one, two) = (accuracy(true), accuracy(false));
    measures.push(
        AuditMeasure::new(
            "accuracy_first",
            "accuracy, better one first",
            MeasureUnit::Share,
            one,
        )
        .against("better one second", two, None),
    );
    measures.push(AuditMeasure::new(
        GAP,
        "difference of the two",
        MeasureUnit::ShareDifference,
        gap,
    ));
    let sign = first.sign(0.5, TOLERABLE);
    let words = words(&first, sign);
    let flipping = match flips.value {
        Some(_) => format!(
            "; verdicts flip in {} of pairs",
            flips.words(MeasureUnit::Share)
        ),
        None => String::new(),
    };
    let mut notes = Vec::new();
    if flips.n == 0 {
        notes.push("each pair was judged in one order only: flips cannot be told".to_owned());
    }
    if known.is_empty() {
        notes.push(
            "no label says which response is better: accuracy by place cannot be told".into(),
        );
    }
    Finding {
        probe: Probe::Position,
        outcome: outcome(sign),
        words: words + &flipping,
        measures,
        notes,
    }
}

/// How often what is shown first is preferred, of the pairs shown in both orders: in one alone, the first place
/// and the better answer cannot be told apart.
fn first_preferred(evidence: &AuditVerdicts<'_>) -> AuditEstimate {
    let both = evidence.scored().filter(|(v, _)| v.orders.len() == 2);
    let both = both.flat_map(|(v, _)| v.orders.iter().map(|o| see(v, o, None)));
    let first = ClusteredValues::new(both.map(|s| (s.cluster, s.first)));
    if first.is_empty() {
        return AuditEstimate::undefined("each pair was judged in one order only");
    }
    first.mean(MeasureUnit::Share, evidence.bootstrap)
}

fn words(first: &AuditEstimate, sign: IntervalPosition) -> String {
    let told = first.words(MeasureUnit::Share);
    match sign {
        IntervalPosition::Above => {
            format!("position bias: what is shown first wins {told} of presentations")
        }
        IntervalPosition::Below => {
            format!("position bias: what is shown last wins, the first only {told}")
        }
        IntervalPosition::There => {
            format!("no sign of position bias: the first wins {told} of presentations")
        }
        IntervalPosition::Unclear if first.value.is_none() => {
            "whether the place decides is unknown: each pair was judged in one order only"
                .to_owned()
        }
        IntervalPosition::Unclear => {
            format!("too few pairs to tell a position bias: the first wins {told} of presentations")
        }
    }
}

fn outcome(sign: IntervalPosition) -> FindingOutcome {
    match sign {
        IntervalPosition::Above | IntervalPosition::Below => FindingOutcome::Biased,
        IntervalPosition::There => FindingOutcome::Sound,
        IntervalPosition::Unclear => FindingOutcome::Unclear,
    }
}

/// Whether the two orders of a pair disagree, 1 or 0.
fn flip(verdict: &PairVerdict) -> Option<(&str, f64)> {
    let [one, two] = &verdict.orders[..] else {
        return None;
    };
    let flipped = compare(one.scores) != compare(two.scores);
    Some((&verdict.cluster, f64::from(u8::from(flipped))))
}

fn see<'a>(
    verdict: &'a PairVerdict,
    order: &OrderScores,
    label: Option<Ordering>,
) -> Presentation<'a> {
    let won = compare(order.scores);
    let hit = |wanted: Ordering| match won {
        Ordering::Equal => 0.5,
        won => f64::from(u8::from(won == wanted)),
    };
    let shown_first = if order.swapped {
        Ordering::Less
    } else {
        Ordering::Greater
    };
    let better = label.filter(|label| *label != Ordering::Equal);
    Presentation {
        cluster: &verdict.cluster,
        first: hit(shown_first),
        better: better.map(|label| (label == shown_first, hit(label))),
    }
}

/// The accuracy where the better response is first, less that where it is second.
fn gap(evidence: &AuditVerdicts<'_>, known: &[&Presentation<'_>]) -> AuditEstimate {
    let clusters: Vec<String> = known.iter().map(|s| s.cluster.to_owned()).collect();
    let values = |place: bool| -> Vec<Option<f64>> {
        let of =
            |s: &&Presentation<'_>| s.better.filter(|(is, _)| *is == place).map(|(_, won)| won);
        known.iter().map(of).collect()
    };
    if known.is_empty() {
        return AuditEstimate::undefined("no label says which response is better");
    }
    let (first, second) = (values(true), values(false));
    for (place, values) in [("first", &first), ("second", &second)] {
        if values.iter().flatten().next().is_none() {
            let n = plural(known.len() as u64, "presentation");
            return AuditEstimate::undefined(format!("the better one was {place} in none of {n}"));
        }
    }
    let difference =
        |weights: &[f64]| -> Defined<f64> { Ok(mean(&first, weights)? - mean(&second, weights)?) };
    ClusteredValues::statistic(
        &clusters,
        MeasureUnit::ShareDifference,
        evidence.bootstrap,
        difference,
    )
}
