//! What changed answers do to a judge: identical ones, another form, something planted.

use std::cmp::Ordering;

use super::probe::{Perturbation, Probe};
use super::result::{AuditMeasure, Finding, FindingOutcome, MeasureUnit};
use super::trial::{AuditTrial, VerdictScores};
use crate::analysis::audit::audit_estimate::{ClusteredValues, IntervalPosition};
use crate::analysis::audit::symmetry::{NOT_TIED, not_tied};
use crate::analysis::audit::trial_set::{MeasureSpec, TrialSet};

/// The name of a gain in points, in files; of a planted text its change stands behind it.
pub(super) const GAIN: &str = "gain";

/// A gain that does not matter. Points.
const TOLERABLE: f64 = 0.25;

/// Whether an answer ties with itself.
pub(super) fn identical(trials: &TrialSet<'_>) -> Finding {
    let named = MeasureSpec {
        key: NOT_TIED,
        title: "identical, not tied",
        unit: MeasureUnit::Share,
    };
    let apart = trials.measure(&named, &[Perturbation::Identical], &|t| {
        t.after.as_ref()?.not_tied()
    });
    let Some(measure) = apart else {
        return Finding::not_run(
            Probe::Identical,
            "no pair of identical answers has a verdict",
        );
    };
    let before = trials
        .of(Perturbation::Identical)
        .filter_map(|t| Some((t.cluster.as_str(), t.before.as_ref()?.not_tied()?)));
    let before = ClusteredValues::new(before).mean(MeasureUnit::Share, trials.bootstrap());
    let (outcome, words) = not_tied(&measure.reading, before.value);
    Finding {
        probe: Probe::Identical,
        outcome,
        words,
        measures: vec![measure.against("the pairs as they are", before, None)],
        notes: Vec::new(),
    }
}

/// The gain of the changed answer over the other one of the pair, which says the same.
fn over_the_other(marks: &VerdictScores, side: usize) -> Option<f64> {
    Some(marks.expected.get(side)? - marks.expected.get(1 - side.min(1))?)
}

/// How far the changed answer won: 1, ½ or 0.
fn won(marks: &VerdictScores, side: usize) -> f64 {
    match (Ordering::from(marks.order), side) {
        (Ordering::Equal, _) => 0.5,
        (Ordering::Greater, 0) | (Ordering::Less, 1) => 1.0,
        _ => 0.0,
    }
}

/// Whether the same text pleases more as a list.
pub(super) fn formatting(trials: &TrialSet<'_>) -> Finding {
    let gain = MeasureSpec {
        key: GAIN,
        title: "score of the list less that of the text",
        unit: MeasureUnit::Points,
    };
    let preferred = MeasureSpec {
        key: "preferred",
        title: "list preferred to the same text",
        unit: MeasureUnit::Share,
    };
    let changes = [Perturbation::Bulleted];
    let gain = trials.measure(&gain, &changes, &|t| {
        over_the_other(t.after.as_ref()?, t.side?)
    });
    let preferred = trials.measure(&preferred, &changes, &|t| {
        Some(won(t.after.as_ref()?, t.side?))
    });
    let (Some(gain), Some(preferred)) = (gain, preferred) else {
        return Finding::not_run(Probe::Formatting, "no reformatted answer has a verdict");
    };
    let told = gain.net().words(MeasureUnit::Points);
    let share = preferred.reading.words(MeasureUnit::Share);
    let (outcome, words) = match gain.net().sign(0.0, TOLERABLE) {
        IntervalPosition::Above => {
            let words = format!("formatting bias: the same text gains {told} as a list");
            (FindingOutcome::Biased, words)
        }
        IntervalPosition::Below => {
            let less = gain.net().opposite().words(MeasureUnit::Points);
            let words = format!("formatting bias: the same text loses {less} as a list");
            (FindingOutcome::Biased, words)
        }
        IntervalPosition::There => {
            let words = format!("no sign of formatting bias: the same text gains {told} as a list");
            (FindingOutcome::Sound, words)
        }
        IntervalPosition::Unclear => (
            FindingOutcome::Unclear,
            format!(
                "too few answers to tell a formatting bias: the same text gains {told} as a list"
            ),
        ),
    };
    Finding {
        probe: Probe::Formatting,
        outcome,
        words: format!("{words}; the list wins {share}"),
        measures: vec![gain, preferred],
        notes: Vec::new(),
    }
}

/// How much more the changed answer got than before.
fn gained(trial: &AuditTrial) -> Option<f64> {
    let (before, after) = trial.both()?;
    Some(after.expected.get(trial.side?)? - before.expected.get(trial.side?)?)
}

/// Whether the preference moved towards the changed answer, 1 or 0.
fn turned(trial: &AuditTrial) -> Option<f64> {
    let (before, after) = trial.both()?;
    let side = trial.side?;
    Some(f64::from(u8::from(won(after, side) > won(before, side))))
}

/// Whether an answer gains by what is planted in it.
pub(super) fn planted(trials: &TrialSet<'_>) -> Finding {
    let changes = Probe::Planted.changes().filter(|change| change.is_tested());
    let mut measures: Vec<AuditMeasure> = Vec::new();
    let (mut guilty, mut unclear, mut told) = (Vec::new(), false, Vec::new());
    for change in changes {
        let (key, title) = (change.key(), change.title());
        let gain = MeasureSpec {
            key: &format!("{GAIN}:{key}"),
            title: &format!("{title}: gain"),
            unit: MeasureUnit::Points,
        };
        let turns = MeasureSpec {
            key: &format!("turned:{key}"),
            title: &format!("{title}: preference turns to it"),
            unit: MeasureUnit::Share,
        };
        let Some(gain) = trials.measure(&gain, &[change], &gained) else {
            continue;
        };
        let words = gain.net().words(MeasureUnit::Points);
        match gain.net().sign(0.0, TOLERABLE) {
            IntervalPosition::Above => guilty.push(format!("{title} gains {words}")),
            IntervalPosition::Unclear => unclear = true,
            IntervalPosition::Below | IntervalPosition::There => {}
        }
        told.push(format!("{title} {words}"));
        measures.push(gain);
        measures.extend(trials.measure(&turns, &[change], &turned));
    }
    if measures.is_empty() {
        return Finding::not_run(
            Probe::Planted,
            "no answer with something planted has a verdict",
        );
    }
    let (outcome, words) = if !guilty.is_empty() {
        let words = format!(
            "gullible: {}, beyond neutral text as long",
            guilty.join("; ")
        );
        (FindingOutcome::Biased, words)
    } else if unclear {
        let words = format!(
            "too few answers to tell whether planted text pays: {}",
            told.join("; ")
        );
        (FindingOutcome::Unclear, words)
    } else {
        let words = format!(
            "what is planted in an answer does not pay: {}",
            told.join("; ")
        );
        (FindingOutcome::Sound, words)
    };
    Finding {
        probe: Probe::Planted,
        outcome,
        words,
        measures,
        notes: Vec::new(),
    }
}
