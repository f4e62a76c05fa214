//! Does the judge look: what a blanked, exchanged or cropped image does to its verdicts, and a medical
//! error in an answer that was right.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::probe::{Perturbation, Probe};
use super::result::{AuditMeasure, Finding, FindingOutcome, MeasureUnit};
use super::trial::{AuditTrial, VerdictScores};
use crate::analysis::audit::audit_estimate::{AuditEstimate, ClusteredValues, IntervalPosition};
use crate::analysis::audit::trial_set::{MeasureSpec, TrialSet};
use acem3_conclusion::compare;

/// The name of a movement of the knowledge score, in files; its change stands behind it.
pub(super) const MOVED: &str = "moved";
/// The name of the share of errors that cost nothing.
pub(super) const MISSED: &str = "missed";

/// A movement of less than this, a hundredth of the scale, is none. Points.
const NOTHING: f64 = 0.05;
/// A fall that would be noticed, for a sure "it does not fall". Points.
const NOTICED: f64 = 0.25;

/// Labels of pairs, by case and models.
pub(super) type PairLabels<'a> = HashMap<(&'a str, [&'a str; 2]), Ordering>;

/// How far the knowledge scores of both answers move. Points.
fn moved(trial: &AuditTrial) -> Option<f64> {
    let (before, after) = trial.both()?;
    let move_of = |r: usize| (after.knowledge[r] - before.knowledge[r]).abs();
    Some(f64::midpoint(move_of(0), move_of(1)))
}

/// Whether another answer is preferred than before, or the same no more; 1 or 0.
fn turned(trial: &AuditTrial) -> Option<f64> {
    let (before, after) = trial.both()?;
    Some(f64::from(u8::from(before.order != after.order)))
}

/// How far the better answer wins by its expected scores: 1, ½ or 0.
fn right(marks: &VerdictScores, label: Ordering) -> f64 {
    match compare(marks.expected) {
        Ordering::Equal => 0.5,
        order => f64::from(u8::from(order == label)),
    }
}

/// Whether the judge looks at the image.
pub(super) fn image(trials: &TrialSet<'_>, known: &PairLabels<'_>) -> Finding {
    let mut measures = Vec::new();
    let mut effects: Vec<(Perturbation, AuditMeasure)> = Vec::new();
    let label = |trial: &AuditTrial| {
        let [a, b] = &trial.pair;
        let label = known.get(&(trial.case.as_str(), [a.as_str(), b.as_str()]));
        label.filter(|label| **label != Ordering::Equal).copied()
    };
    for change in [
        Perturbation::Blank,
        Perturbation::Exchanged,
        Perturbation::Cropped,
    ] {
        let (key, title) = (change.key(), change.title());
        let named = |key: &str, title: &str, unit| (key.to_owned(), title.to_owned(), unit);
        let figure = |(key, title, unit): (String, String, MeasureUnit),
                      value: &dyn Fn(&AuditTrial) -> _| {
            let named = MeasureSpec {
                key: &key,
                title: &title,
                unit,
            };
            trials.measure(&named, &[change], value)
        };
        let moves = named(
            &format!("{MOVED}:{key}"),
            &format!("{title}: knowledge moves"),
            MeasureUnit::Points,
        );
        let Some(moves) = figure(moves, &moved) else {
            continue;
        };
        measures.push(moves.clone());
        effects.push((change, moves));
        let turns = named(
            &format!("turned:{key}"),
            &format!("{title}: preference changes"),
            MeasureUnit::Share,
        );
        measures.extend(figure(turns, &turned));
        let loss = named(
            &format!("accuracy_loss:{key}"),
            &format!("{title}: accuracy lost"),
            MeasureUnit::ShareDifference,
        );
        measures.extend(figure(loss, &|t| {
            let ((before, after), label) = (t.both()?, label(t)?);
            Some(right(before, label) - right(after, label))
        }));
    }
    if effects
        .iter()
        .all(|(change, _)| *change == Perturbation::Cropped)
    {
        let why = "no pair was judged with its image blanked or exchanged";
        return Finding::not_run(Probe::Image, why);
    }
    let (outcome, words) = sees(&effects, &measures);
    let mut notes = Vec::new();
    if !effects
        .iter()
        .any(|(change, _)| *change == Perturbation::Exchanged)
    {
        notes.push("image exchanged: not run, for no two cases have different images".to_owned());
    }
    Finding {
        probe: Probe::Image,
        outcome,
        words,
        measures,
        notes,
    }
}

/// What the movements say. Another case's image is the test: a judge can tell a grey image from a picture
/// without having looked at what is on it.
fn sees(
    effects: &[(Perturbation, AuditMeasure)],
    measures: &[AuditMeasure],
) -> (FindingOutcome, String) {
    let told = |(change, measure): &(Perturbation, AuditMeasure)| {
        let moved = measure.net().words(MeasureUnit::Points);
        let key = format!("turned:{}", change.key());
        let turned = measures.iter().find(|m| m.key == key);
        let turned = turned
            .map(|m| m.reading.words(MeasureUnit::Share))
            .unwrap_or_default();
        format!("{} {moved}, {turned} of preferences change", change.title())
    };
    let words: Vec<String> = effects.iter().map(told).collect();
    let words = words.join("; ");
    let sign = |wanted| {
        let found = effects.iter().find(|(change, _)| *change == wanted);
        found.map(|(_, measure)| still_or_moved(measure.net()))
    };
    let blank = sign(Perturbation::Blank);
    let (outcome, lead) = match sign(Perturbation::Exchanged).or(blank) {
        Some(IntervalPosition::Above) => (
            FindingOutcome::Sound,
            "the judge looks at the image; its knowledge score moves",
        ),
        Some(IntervalPosition::There) if blank == Some(IntervalPosition::Above) => (
            FindingOutcome::Biased,
            "BLIND to what is on the image: it notices a grey one, and takes any other for the right one",
        ),
        Some(IntervalPosition::There) => (
            FindingOutcome::Biased,
            "BLIND: the knowledge score does not move with the image",
        ),
        _ => (
            FindingOutcome::Unclear,
            "too few cases to tell whether the judge looks at the image",
        ),
    };
    (outcome, format!("{lead}: {words}"))
}

/// Whether a score moves; less than the control is not at all.
fn still_or_moved(net: &AuditEstimate) -> IntervalPosition {
    let small = net.value.is_some_and(|value| value < NOTHING);
    match net.sign(0.0, NOTHING) {
        IntervalPosition::Above | IntervalPosition::Below if small => IntervalPosition::There,
        sign => sign,
    }
}

/// How far the knowledge score of the wrong answer lies below that of the right one beside it. Points.
fn fall(trial: &AuditTrial) -> Option<f64> {
    let knowledge = trial.after.as_ref()?.knowledge;
    let side = trial.side?;
    Some(knowledge.get(1 - side.min(1))? - knowledge.get(side)?)
}

/// Whether an error costs its answer nothing, or next to nothing; 1 or 0.
fn missed(trial: &AuditTrial) -> Option<f64> {
    Some(f64::from(u8::from(fall(trial)? < NOTHING)))
}

/// Whether a medical error in a right answer costs it.
pub(super) fn errors(trials: &TrialSet<'_>, left_out: &[(Perturbation, usize)]) -> Finding {
    let kinds: Vec<Perturbation> = Probe::Errors.changes().filter(|c| c.is_tested()).collect();
    let measure = |key: &str, title: &str, changes: &[Perturbation]| {
        let named = MeasureSpec {
            key,
            title,
            unit: MeasureUnit::Points,
        };
        trials.measure(&named, changes, &fall)
    };
    let Some(all) = measure("fall", "knowledge falls by an error", &kinds) else {
        let why = "no answer known to be right (a reference, or the better one by a label) says a side, \
                   a number, an organ, a kind of image or anything that can be denied";
        return Finding::not_run(Probe::Errors, why);
    };
    let tested = kinds.iter().flat_map(|kind| trials.of(*kind));
    let lost = tested.filter_map(|t| Some((t.cluster.as_str(), missed(t)?)));
    let lost = ClusteredValues::new(lost).mean(MeasureUnit::Share, trials.bootstrap());
    let share = lost.words(MeasureUnit::Share);
    let mut measures = vec![
        all.clone(),
        AuditMeasure::new(MISSED, "errors that cost nothing", MeasureUnit::Share, lost),
    ];
    for kind in &kinds {
        let title = format!("  {}", kind.title());
        measures.extend(measure(&format!("fall:{}", kind.key()), &title, &[*kind]));
    }
    let told = all.net().words(MeasureUnit::Points);
    let (outcome, words) = match all.net().sign(0.0, NOTICED) {
        IntervalPosition::Above => (
            FindingOutcome::Sound,
            format!("medical errors cost the answer {told}"),
        ),
        IntervalPosition::There => (
            FindingOutcome::Biased,
            format!("medical errors cost nothing: {told}"),
        ),
        IntervalPosition::Below => {
            let words =
                format!("medical errors PAY: the wrong answer is above the right one, {told}");
            (FindingOutcome::Biased, words)
        }
        IntervalPosition::Unclear => {
            let words = format!("too few answers to tell whether medical errors cost: {told}");
            (FindingOutcome::Unclear, words)
        }
    };
    let without: Vec<String> = left_out
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(kind, n)| format!("{} {n}", kind.title()))
        .collect();
    let without = (!without.is_empty()).then(|| {
        format!(
            "answers that say nothing of a kind, and were left out of it: {}",
            without.join(", ")
        )
    });
    Finding {
        probe: Probe::Errors,
        outcome,
        words: format!("{words}; {share} of errors cost less than {NOTHING} points"),
        measures,
        notes: without.into_iter().collect(),
    }
}
