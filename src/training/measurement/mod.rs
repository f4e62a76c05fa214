//! Accuracy of a panel on phantoms, whose correct verdict is known exactly, and on real questions
//! whose better response is known. Every statistic has a confidence interval. Image sensitivity is measured with
//! blank and mismatched images.

mod config;
mod interval;
mod report;
pub(crate) mod test_pair;
pub(crate) mod test_sets;

pub use config::MeasurementConfig;
pub use interval::{Proportion, share};
pub use report::{MeasurementReport, SetResults};

use std::cell::Cell;
use std::cmp::Ordering;
use std::time::{Duration, Instant};

use acem3_conclusion::{Verdict, compare};
use acem3_experts::{Aspect, Criterion};
use anyhow::{Result, bail};

use crate::judging::judge::{Judge, Unscored};
use crate::support::terminal::interrupt::Interrupt;
use crate::support::terminal::progress::duration;
use crate::support::text::plural;
use crate::training::measurement::test_pair::{ImageCondition, TestPair};
use crate::training::measurement::test_sets::{KnownOrder, TestSet};

/// Time between two progress messages.
const PAUSE: Duration = Duration::from_secs(10);

/// Judges every test set under every image condition and reports progress to `say`. Skips the mismatched
/// images of a set with only one image.
///
/// # Errors
/// If there is nothing to measure, a data set cannot be read, the judge fails, or the user interrupts it.
pub fn measure(
    judge: &mut dyn Judge,
    plan: &MeasurementConfig,
    interrupt: &Interrupt,
    say: &dyn Fn(&str),
) -> Result<MeasurementReport> {
    let sets = crate::training::measurement::test_sets::sets(plan)?;
    if sets.is_empty() {
        bail!(
            "there is nothing to measure\n\
             hint: pass --phantoms with at least 1, or --data with a data set"
        );
    }
    let mut figures = Vec::new();
    for set in sets {
        for (view, name) in [
            (ImageCondition::Own, "own"),
            (ImageCondition::Blank, "blank"),
            (ImageCondition::Exchanged, "exchanged"),
        ] {
            if view != ImageCondition::Own && !plan.blinded {
                continue;
            }
            if view == ImageCondition::Exchanged
                && !crate::training::measurement::test_pair::can_exchange(&set.trials)
            {
                say(&format!(
                    "{}: skipped mismatched images, the set has only one image",
                    set.name
                ));
                continue;
            }
            let (start, last) = (Instant::now(), Cell::new(Instant::now()));
            let progress = |done: usize| {
                interrupt.check("no results were saved; the same command starts again")?;
                let all = set.trials.len();
                if last.get().elapsed() >= PAUSE && done < all {
                    last.set(Instant::now());
                    let left = start.elapsed().as_secs_f64() / done as f64 * (all - done) as f64;
                    let left = duration(left);
                    say(&format!(
                        "{}, {name} image: {done} of {all} pairs, {left} left",
                        set.name
                    ));
                }
                Ok(())
            };
            let verdicts = crate::training::measurement::test_pair::judge(
                judge,
                &set.trials,
                view,
                &progress,
            )?;
            let judged = verdicts.iter().filter(|verdict| verdict.is_ok()).count();
            let n = plural(judged as u64, "pair");
            say(&format!("{}, {name} image: {n} judged", set.name));
            figures.push(of_set(&set, name, &verdicts));
        }
    }
    Ok(MeasurementReport {
        judge: judge.name(),
        figures,
    })
}

fn of_set(set: &TestSet, view: &str, verdicts: &[Result<Verdict, Unscored>]) -> SetResults {
    let pairs = set.trials.iter().zip(&set.known).zip(verdicts);
    let judged: Vec<(&TestPair, &KnownOrder, &Verdict)> = pairs
        .filter_map(|((trial, known), verdict)| Some((trial, known, verdict.as_ref().ok()?)))
        .collect();
    let of_trials = |value: &dyn Fn(&TestPair, &KnownOrder, &Verdict) -> Option<f64>| {
        let values = judged.iter().filter_map(|(trial, known, verdict)| {
            Some((trial.cluster.clone(), value(trial, known, verdict)?))
        });
        share(&values.collect::<Vec<_>>())
    };
    let of =
        |value: &dyn Fn(&KnownOrder, &Verdict) -> Option<f64>| of_trials(&|_, k, v| value(k, v));
    let preferred_where = |closed: bool| {
        of(&|k, v| {
            let is_one = k.closed == Some(closed);
            is_one.then(|| preferred(k, v.expected())).flatten()
        })
    };
    let knowledge = |k: &KnownOrder, v: &Verdict| {
        let known = k.aspect(Aspect::MedicalKnowledge)?;
        Some(one_if(known == compare(v.aspect(Aspect::MedicalKnowledge))))
    };
    let mut unscored = verdicts.iter().filter_map(|verdict| verdict.as_ref().err());
    SetResults {
        set: set.name.to_owned(),
        image: view.to_owned(),
        n: set.trials.len(),
        unscored: set.trials.len() - judged.len(),
        unscored_first: unscored.next().map(|u| u.message.clone()),
        order: of(&|k, v| Some(one_if(k.order == v.order()))),
        single_order: of(&|k, v| Some(one_if(v.orders.first()?.order() == k.order))),
        knowledge: of(&knowledge),
        preferred: of(&|k, v| preferred(k, v.expected())),
        preferred_closed: preferred_where(true),
        preferred_open: preferred_where(false),
        preferred_by_accuracy: of(&|k, v| {
            preferred(k, v.criterion_expected(Criterion::FactualAccuracy))
        }),
        better_shown: [true, false].map(|first| of(&|k, v| shown(k.order, v, first))),
        flips: of(&|_, v| v.flip().map(one_if)),
        longer: of_trials(&|t, k, v| longer(t, k.order, v.order())),
    }
}

/// Returns 1 if the presentation with the better response first (second if not `first`) is judged correctly.
fn shown(known: Ordering, verdict: &Verdict, first: bool) -> Option<f64> {
    let swapped = match known {
        Ordering::Equal => return None,
        Ordering::Greater => !first,
        Ordering::Less => first,
    };
    let order = verdict
        .orders
        .iter()
        .find(|order| order.swapped == swapped)?;
    Some(one_if(order.order() == known))
}

/// Returns 1 if the longer response is preferred; `None` unless the shorter one is better.
fn longer(trial: &TestPair, known: Ordering, judged: Ordering) -> Option<f64> {
    let [a, b] = trial.responses.each_ref();
    let by_length = a
        .split_whitespace()
        .count()
        .cmp(&b.split_whitespace().count());
    let shorter_is_better = by_length != Ordering::Equal && known == by_length.reverse();
    shorter_is_better.then(|| one_if(judged == by_length))
}

fn one_if(right: bool) -> f64 {
    f64::from(u8::from(right))
}

/// Returns 1 if the better response has the higher expected score, ½ for a tie.
fn preferred(known: &KnownOrder, expected: [f64; 2]) -> Option<f64> {
    let judged = compare(expected);
    match known.order {
        Ordering::Equal => None,
        _ if judged == Ordering::Equal => Some(0.5),
        order => Some(one_if(order == judged)),
    }
}
