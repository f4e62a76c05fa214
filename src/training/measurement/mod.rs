//! Accuracy of a panel on pairs whose better response is known.
//!
//! The pairs are phantoms, with an exact correct verdict, and real questions. Every statistic has a
//! confidence interval. Blank and mismatched images measure image sensitivity.

mod config;
mod data_set_pairs;
mod interval;
mod label_accuracy;
mod label_results;
pub(crate) mod labelled_cases;
pub(crate) mod majority;
mod observer;
mod report;
mod rule_accuracy;
pub(crate) mod test_pair;
pub(crate) mod test_sets;
mod trivial_rules;

pub use config::MeasurementConfig;
pub use interval::{Proportion, proportion_with_interval};
pub use label_results::{LabelResults, ScoreCorrelation, TargetAccuracy};
pub use observer::{MeasuredCounts, MeasurementObserver};
pub use report::{MeasurementReport, SetResults};
pub use trivial_rules::TrivialRules;

use std::cmp::Ordering;

use acem3_conclusion::{Verdict, compare_scores};
use acem3_experts::{Aspect, Criterion};
use anyhow::{Result, bail};

use crate::judging::judge::{Judge, Unscored};
use crate::support::terminal::interrupt::Interrupt;
use crate::training::measurement::data_set_pairs::data_set_pairs;
use crate::training::measurement::label_accuracy::{
    compare_with_labels, has_aspect, has_criterion,
};
use crate::training::measurement::labelled_cases::LabelledCases;
use crate::training::measurement::rule_accuracy::{apply_rules, compare_lengths};
use crate::training::measurement::test_pair::{
    ImageCondition, TestPair, has_distinct_images, judge_first_pairs,
};
use crate::training::measurement::test_sets::{KnownOrder, TestSet, phantoms};

/// Judges every test set under every image condition. Skips the mismatched images of a set with only
/// one image. After an interrupt, the report has the pairs that were judged until then.
///
/// # Errors
/// If there is nothing to measure, a data set cannot be read, the judge fails, or the observer
/// returns an error.
pub fn measure(
    judge: &mut dyn Judge,
    config: &MeasurementConfig,
    interrupt: &Interrupt,
    observer: &mut dyn MeasurementObserver,
) -> Result<MeasurementReport> {
    let sets = test_sets(config)?;
    if sets.is_empty() {
        bail!(
            "there is nothing to measure\n\
             hint: pass --phantoms with at least 1, --data with a data set, or --cases with labelled cases"
        );
    }
    let runs: Vec<(&TestSet, ImageCondition)> =
        sets.iter().flat_map(|set| conditions(set, config, observer)).collect();
    let total = runs.iter().map(|(set, _)| set.pairs.len()).sum::<usize>() as u64;
    observer.start(&judge.name(), total)?;
    let mut counts = MeasuredCounts::default();
    let mut results = Vec::new();
    for (set, condition) in runs {
        let verdicts = judge_first_pairs(judge, &set.pairs, condition, &mut |batch| {
            counts.add(batch);
            observer.judged(counts);
            !interrupt.is_requested()
        })?;
        let is_complete = verdicts.len() == set.pairs.len();
        if !verdicts.is_empty() {
            let mut set_results = set_results(set, condition.name(), &verdicts);
            if condition == ImageCondition::Original {
                set_results.rules = Some(apply_rules(set));
            }
            observer.finished(&set_results)?;
            results.push(set_results);
        }
        if !is_complete {
            return Ok(MeasurementReport { judge: judge.name(), sets: results, is_partial: true });
        }
    }
    Ok(MeasurementReport { judge: judge.name(), sets: results, is_partial: false })
}

/// Returns the phantoms, the held-out parts of the data sets in a data folder, and the labelled cases
/// of the user. Omits empty sets.
fn test_sets(config: &MeasurementConfig) -> Result<Vec<TestSet>> {
    let mut sets = vec![phantoms(config.phantoms, config.seed)?];
    if let Some(data) = &config.data {
        sets.extend(data_set_pairs(data, config.seed, config.limit)?);
    }
    if let Some(cases) = &config.cases {
        let mut set = LabelledCases::read(cases)?.set;
        set.pairs.truncate(config.limit);
        set.known_orders.truncate(config.limit);
        sets.push(set);
    }
    sets.retain(|set| !set.pairs.is_empty());
    Ok(sets)
}

/// Returns the image conditions of a test set.
fn conditions<'a>(
    set: &'a TestSet,
    config: &MeasurementConfig,
    observer: &mut dyn MeasurementObserver,
) -> Vec<(&'a TestSet, ImageCondition)> {
    let mut conditions = vec![(set, ImageCondition::Original)];
    let has_images = set.pairs.iter().all(|pair| pair.image.is_present());
    if !set.tests_other_images {
        return conditions;
    }
    if config.tests_image_sensitivity && !has_images {
        let note =
            format!("{}: skipped blank and mismatched images, a case has no image", set.name);
        observer.note(&note);
    } else if config.tests_image_sensitivity {
        conditions.push((set, ImageCondition::Blank));
        if has_distinct_images(&set.pairs) {
            conditions.push((set, ImageCondition::Mismatched));
        } else {
            let note =
                format!("{}: skipped mismatched images, the set has only one image", set.name);
            observer.note(&note);
        }
    }
    conditions
}

/// Computes the statistics of a test set under one image condition. `verdicts`: those of all pairs, or
/// of the first ones.
fn set_results(
    set: &TestSet,
    condition: &str,
    verdicts: &[Result<Verdict, Unscored>],
) -> SetResults {
    let pairs = set.pairs.iter().zip(&set.known_orders).zip(verdicts);
    let judged: Vec<(&TestPair, &KnownOrder, &Verdict)> = pairs
        .filter_map(|((pair, known), verdict)| Some((pair, known, verdict.as_ref().ok()?)))
        .collect();
    let mean_of_pairs = |value: &dyn Fn(&TestPair, &KnownOrder, &Verdict) -> Option<f64>| {
        let values = judged.iter().filter_map(|(pair, known, verdict)| {
            Some((pair.cluster.clone(), value(pair, known, verdict)?))
        });
        proportion_with_interval(&values.collect::<Vec<_>>())
    };
    let mean = |value: &dyn Fn(&KnownOrder, &Verdict) -> Option<f64>| {
        mean_of_pairs(&|_, known, verdict| value(known, verdict))
    };
    let preferred_if_closed = |closed: bool| {
        mean(&|k, v| {
            let matches = k.is_closed == Some(closed);
            matches.then(|| better_preferred(k, v.expected_scores())).flatten()
        })
    };
    // Of pairs whose better response is the longer one, or the shorter one.
    let preferred_if_better_is = |length: Ordering| {
        mean_of_pairs(&|t, k, v| {
            let lengths = compare_lengths(t);
            let better = if k.order? == Ordering::Less { lengths.reverse() } else { lengths };
            (better == length).then(|| better_preferred(k, v.expected_scores())).flatten()
        })
    };
    let final_order = |known: &KnownOrder, judged: Option<Ordering>| {
        known.order.map(|order| indicator(Some(order) == judged))
    };
    let knowledge = |k: &KnownOrder, v: &Verdict| {
        let known = k.aspect(Aspect::MEDICAL_KNOWLEDGE).filter(|_| {
            // A panel of another rubric has no such aspect.
            has_aspect(v, Aspect::MEDICAL_KNOWLEDGE)
        })?;
        Some(indicator(known == compare_scores(v.aspect_scores(Aspect::MEDICAL_KNOWLEDGE))))
    };
    let mut unscored = verdicts.iter().filter_map(|verdict| verdict.as_ref().err());
    SetResults {
        set: set.name.to_owned(),
        image: condition.to_owned(),
        n: verdicts.len(),
        planned: (verdicts.len() < set.pairs.len()).then_some(set.pairs.len()),
        unscored: verdicts.len() - judged.len(),
        unscored_first: unscored.next().map(|u| u.message.clone()),
        order: mean(&|k, v| final_order(k, Some(v.preference()))),
        single_order: mean(&|k, v| final_order(k, Some(v.orders.first()?.preference()))),
        knowledge: mean(&knowledge),
        preferred: mean(&|k, v| better_preferred(k, v.expected_scores())),
        preferred_closed: preferred_if_closed(true),
        preferred_open: preferred_if_closed(false),
        preferred_longer: preferred_if_better_is(Ordering::Greater),
        preferred_shorter: preferred_if_better_is(Ordering::Less),
        preferred_by_accuracy: mean(&|k, v| {
            let criterion = Criterion::FACTUAL_ACCURACY;
            has_criterion(v, criterion)
                .then(|| better_preferred(k, v.expected_criterion_scores(criterion)))
                .flatten()
        }),
        better_shown: [true, false].map(|first| mean(&|k, v| order_accuracy(k.order?, v, first))),
        flips: mean(&|_, v| v.is_flipped().map(indicator)),
        labels: compare_with_labels(&judged),
        rules: None,
        longer: mean_of_pairs(&|t, k, v| longer_preferred(t, k.order?, v.preference())),
    }
}

/// Returns 1 if the presentation with the better response first (second if not `first`) is judged
/// correctly and 0 otherwise. Returns `None` for a tie or if the presentation was not judged.
fn order_accuracy(known: Ordering, verdict: &Verdict, first: bool) -> Option<f64> {
    let swapped = match known {
        Ordering::Equal => return None,
        Ordering::Greater => !first,
        Ordering::Less => first,
    };
    let order = verdict.orders.iter().find(|order| order.swapped == swapped)?;
    Some(indicator(order.preference() == known))
}

/// Returns 1 if the longer response is preferred and 0 otherwise; `None` unless the shorter one is
/// better.
fn longer_preferred(pair: &TestPair, known: Ordering, judged: Ordering) -> Option<f64> {
    let [a, b] = pair.responses.each_ref();
    let by_length = a.split_whitespace().count().cmp(&b.split_whitespace().count());
    let shorter_is_better = by_length != Ordering::Equal && known == by_length.reverse();
    shorter_is_better.then(|| indicator(judged == by_length))
}

fn indicator(condition: bool) -> f64 {
    f64::from(u8::from(condition))
}

/// Returns 1 if the better response has the higher expected score, ½ for equal scores and 0
/// otherwise; `None` if the known order is a tie.
fn better_preferred(known: &KnownOrder, expected: Vec<f64>) -> Option<f64> {
    let judged = compare_scores(expected);
    match known.order? {
        Ordering::Equal => None,
        _ if judged == Ordering::Equal => Some(0.5),
        order => Some(indicator(order == judged)),
    }
}
