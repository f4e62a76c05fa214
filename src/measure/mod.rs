//! What a panel is worth: phantoms, whose right verdict is known exactly, and real questions whose
//! better answer is known. Every figure with its interval, and with the image blanked or exchanged.

mod interval;
mod report;
pub(crate) mod sets;
pub(crate) mod trial;

pub use interval::{Share, share};
pub use report::{Figures, Report};

use std::cell::Cell;
use std::cmp::Ordering;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use acem3_conclusion::{Verdict, compare};
use acem3_experts::{Aspect, Criterion};
use anyhow::{Result, bail};

use crate::interrupt::Interrupt;
use crate::judge::Judge;
use crate::progress::duration;
use crate::summary::plural;
use sets::{Known, Set};
use trial::View;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Phantom cases.
    pub phantoms: u64,
    /// The seed of phantoms and wrong answers.
    pub seed: u64,
    /// The folder of public data sets.
    pub data: Option<PathBuf>,
    /// Cases of each data set.
    pub limit: usize,
}

/// How often it is said how far it is.
const PAUSE: Duration = Duration::from_secs(10);

/// Judges every set under every view, saying now and then how far it is. Where all of a set is about one
/// image, none can be exchanged, and that view is left out.
///
/// # Errors
/// When there is nothing to measure, when a data set cannot be read, when the judge fails, and when the
/// person asked to stop.
pub fn measure(
    judge: &mut dyn Judge,
    plan: &Plan,
    interrupt: &Interrupt,
    say: &dyn Fn(&str),
) -> Result<Report> {
    let sets = sets::sets(plan)?;
    if sets.is_empty() {
        bail!(
            "there is nothing to measure\n\
             hint: --phantoms takes at least 1 where --data brings no questions"
        );
    }
    let mut figures = Vec::new();
    for set in sets {
        for (view, name) in [
            (View::Own, "own"),
            (View::Blank, "blank"),
            (View::Exchanged, "exchanged"),
        ] {
            if view == View::Exchanged && !trial::can_exchange(&set.trials) {
                say(&format!(
                    "{}: one image alone, none to exchange it with",
                    set.name
                ));
                continue;
            }
            let (start, last) = (Instant::now(), Cell::new(Instant::now()));
            let progress = |done: usize| {
                interrupt.check("no figures were kept, and the same command begins anew")?;
                let all = set.trials.len();
                if last.get().elapsed() >= PAUSE && done < all {
                    last.set(Instant::now());
                    let left = start.elapsed().as_secs_f64() / done as f64 * (all - done) as f64;
                    let left = duration(left);
                    say(&format!(
                        "{}, {name} image: {done} of {all}, {left} left",
                        set.name
                    ));
                }
                Ok(())
            };
            let verdicts = trial::judge(judge, &set.trials, view, &progress)?;
            let n = plural(verdicts.len() as u64, "pair");
            say(&format!("{}, {name} image: {n} judged", set.name));
            figures.push(of_set(&set, name, &verdicts));
        }
    }
    Ok(Report {
        judge: judge.name(),
        figures,
    })
}

fn of_set(set: &Set, view: &str, verdicts: &[Option<Verdict>]) -> Figures {
    let judged: Vec<(&str, &Known, &Verdict)> = set
        .trials
        .iter()
        .zip(&set.known)
        .zip(verdicts)
        .filter_map(|((trial, known), verdict)| {
            Some((trial.cluster.as_str(), known, verdict.as_ref()?))
        })
        .collect();
    let of = |value: &dyn Fn(&Known, &Verdict) -> Option<f64>| {
        let values: Vec<(String, f64)> = judged
            .iter()
            .filter_map(|(cluster, known, verdict)| {
                Some(((*cluster).to_owned(), value(known, verdict)?))
            })
            .collect();
        share(&values)
    };
    let single = |k: &Known, v: &Verdict| {
        let first = v.orders.first()?;
        Some(f64::from(u8::from(first.order() == k.order)))
    };
    Figures {
        set: set.name.to_owned(),
        image: view.to_owned(),
        n: set.trials.len(),
        unscored: set.trials.len() - judged.len(),
        order: of(&|k, v| right(k.order, v.order())),
        single_order: of(&single),
        knowledge: of(&|k, v| right(k.aspects[1]?, compare(v.aspect(Aspect::MedicalKnowledge)))),
        preferred: of(&|k, v| preferred(k, v.expected())),
        preferred_closed: of(&|k, v| {
            k.closed
                .filter(|c| *c)
                .and_then(|_| preferred(k, v.expected()))
        }),
        preferred_open: of(&|k, v| {
            k.closed
                .filter(|c| !*c)
                .and_then(|_| preferred(k, v.expected()))
        }),
        preferred_by_accuracy: of(&|k, v| {
            preferred(k, v.criterion_expected(Criterion::FactualAccuracy))
        }),
        flips: of(&|_, v| v.flip().map(|flip| f64::from(u8::from(flip)))),
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every figure is optional to its caller"
)]
fn right(known: Ordering, judged: Ordering) -> Option<f64> {
    Some(f64::from(u8::from(known == judged)))
}

/// Whether the better response has the higher expected score; a tie is half a preference.
fn preferred(known: &Known, expected: [f64; 2]) -> Option<f64> {
    let judged = compare(expected);
    match known.order {
        Ordering::Equal => None,
        _ if judged == Ordering::Equal => Some(0.5),
        order => Some(f64::from(u8::from(order == judged))),
    }
}
