//! Does the place decide: is what is shown first preferred, and does the verdict change with the order.

use std::cmp::Ordering;

use super::evidence::Evidence;
use super::probe::Probe;
use super::reading::{Reading, Sample, Sign};
use super::result::{Finding, Measure, Outcome, Unit};
use crate::analysis::verdicts::{Presented, Verdict};
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
struct Seen<'a> {
    cluster: &'a str,
    /// How far what was shown first won: 1, ½ or 0.
    first: f64,
    /// Whether the better response was shown first, and how far it won; where one is better.
    better: Option<(bool, f64)>,
}

/// Looks for a preference for a place.
pub(super) fn find(evidence: &Evidence<'_>) -> Finding {
    let bootstrap = evidence.bootstrap;
    let flips = Sample::new(evidence.scored().filter_map(|(v, _)| flip(v)));
    let seen: Vec<Seen<'_>> = evidence
        .scored()
        .flat_map(|(verdict, label)| verdict.orders.iter().map(move |o| see(verdict, o, label)))
        .collect();
    if seen.is_empty() {
        return Finding::not_run(Probe::Position, "the records tell no presentation order");
    }
    let first = first_preferred(evidence);
    let flips = flips.mean(Unit::Share, bootstrap);
    let known: Vec<&Seen<'_>> = seen.iter().filter(|s| s.better.is_some()).collect();
    let accuracy = |place: bool| {
        let hit = |s: &&&Seen<'_>| s.better.filter(|(is, _)| *is == place).map(|(_, won)| won);
        let values = known.iter().filter_map(|s| Some((s.cluster, hit(&s)?)));
        Sample::new(values).mean(Unit::Share, bootstrap)
    };
    let mut measures = vec![
        Measure::new(FIRST, "shown first preferred", Unit::Share, first.clone()),
        Measure::new(
            FLIP_RATE,
            "verdict flips with the order",
            Unit::Share,
            flips.clone(),
        ),
    ];
    let gap = gap(evidence, &known);
    let (one, two) = (accuracy(true), accuracy(false));
    measures.push(
        Measure::new(
            "accuracy_first",
            "accuracy, better one first",
            Unit::Share,
            one,
        )
        .against("better one second", two, None),
    );
    measures.push(Measure::new(
        GAP,
        "difference of the two",
        Unit::ShareDifference,
        gap,
    ));
    let sign = first.sign(0.5, TOLERABLE);
    let words = words(&first, sign);
    let flipping = match flips.value {
        Some(_) => format!("; verdicts flip in {} of pairs", flips.words(Unit::Share)),
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
fn first_preferred(evidence: &Evidence<'_>) -> Reading {
    let both = evidence.scored().filter(|(v, _)| v.orders.len() == 2);
    let both = both.flat_map(|(v, _)| v.orders.iter().map(|o| see(v, o, None)));
    let first = Sample::new(both.map(|s| (s.cluster, s.first)));
    if first.is_empty() {
        return Reading::undefined("each pair was judged in one order only");
    }
    first.mean(Unit::Share, evidence.bootstrap)
}

fn words(first: &Reading, sign: Sign) -> String {
    let told = first.words(Unit::Share);
    match sign {
        Sign::Above => format!("position bias: what is shown first wins {told} of presentations"),
        Sign::Below => format!("position bias: what is shown last wins, the first only {told}"),
        Sign::There => format!("no sign of position bias: the first wins {told} of presentations"),
        Sign::Unclear if first.value.is_none() => {
            "whether the place decides is unknown: each pair was judged in one order only"
                .to_owned()
        }
        Sign::Unclear => {
            format!("too few pairs to tell a position bias: the first wins {told} of presentations")
        }
    }
}

fn outcome(sign: Sign) -> Outcome {
    match sign {
        Sign::Above | Sign::Below => Outcome::Biased,
        Sign::There => Outcome::Sound,
        Sign::Unclear => Outcome::Unclear,
    }
}

/// Whether the two orders of a pair disagree, 1 or 0.
fn flip(verdict: &Verdict) -> Option<(&str, f64)> {
    let [one, two] = &verdict.orders[..] else {
        return None;
    };
    let flipped = compare(one.scores) != compare(two.scores);
    Some((&verdict.cluster, f64::from(u8::from(flipped))))
}

fn see<'a>(verdict: &'a Verdict, order: &Presented, label: Option<Ordering>) -> Seen<'a> {
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
    Seen {
        cluster: &verdict.cluster,
        first: hit(shown_first),
        better: better.map(|label| (label == shown_first, hit(label))),
    }
}

/// The accuracy where the better response is first, less that where it is second.
fn gap(evidence: &Evidence<'_>, known: &[&Seen<'_>]) -> Reading {
    let clusters: Vec<String> = known.iter().map(|s| s.cluster.to_owned()).collect();
    let values = |place: bool| -> Vec<Option<f64>> {
        let of = |s: &&Seen<'_>| s.better.filter(|(is, _)| *is == place).map(|(_, won)| won);
        known.iter().map(of).collect()
    };
    if known.is_empty() {
        return Reading::undefined("no label says which response is better");
    }
    let (first, second) = (values(true), values(false));
    for (place, values) in [("first", &first), ("second", &second)] {
        if values.iter().flatten().next().is_none() {
            let n = plural(known.len() as u64, "presentation");
            return Reading::undefined(format!("the better one was {place} in none of {n}"));
        }
    }
    let difference =
        |weights: &[f64]| -> Defined<f64> { Ok(mean(&first, weights)? - mean(&second, weights)?) };
    Sample::statistic(
        &clusters,
        Unit::ShareDifference,
        evidence.bootstrap,
        difference,
    )
}
