//! What the metrics found, model by model.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;

use super::answer::{AnswerSet, MetricAnswer, MissingAnswer};
use super::metric::{Metric, MetricColumn};
use super::outcome::{AnswerScores, MetricOutcome, UncountedReason};
use super::sample::ColumnSample;

/// The version of this form. Fields are added, never renamed.
const SCHEMA: u32 = 1;

/// The figures of all models.
#[derive(Clone, Debug, Serialize)]
pub struct MetricTable {
    /// The version of this form.
    pub schema: u32,
    /// What was scored, as it was named.
    pub source: String,
    /// How many cases could be read.
    pub cases: u64,
    /// How many lines could not be read of which nobody knows whose answers are lost by it.
    pub unreadable: u64,
    /// The settings that move a number, by name.
    pub settings: BTreeMap<String, String>,
    /// The models, in the order of their first answers.
    pub models: Vec<ModelMetrics>,
}

/// The figures of one model.
#[derive(Clone, Debug, Serialize)]
pub struct ModelMetrics {
    /// Its name.
    pub model: String,
    /// How many answers it should have given.
    pub expected: u64,
    /// How many it gave.
    pub answers: u64,
    /// One figure for each column.
    pub metrics: Vec<MetricEstimate>,
}

/// One column for one model.
#[derive(Clone, Debug, Serialize)]
pub struct MetricEstimate {
    /// The name of the column.
    pub metric: &'static str,
    /// The mean; absent without a number.
    pub value: Option<f64>,
    /// Its 95 % interval, whole images being drawn again; Wilson's for shares of few images, or of none or
    /// all; absent where there is none.
    pub interval: Option<[f64; 2]>,
    /// Why there is a value and no interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_interval: Option<String>,
    /// How many answers have a number.
    pub n: u64,
    /// How many answers the metric is about.
    pub of: u64,
    /// The part of them that has a number; absent if there are none.
    pub coverage: Option<f64>,
    /// The means if every answer without a number had the least, and the largest, there can be;
    /// absent where a range has no end.
    pub bounds: Option<[f64; 2]>,
    /// How many images the answers are about.
    pub images: usize,
    /// The least and the largest value there can be; `null` for no end. More is better.
    pub range: [Option<f64>; 2],
    /// Why answers have no number, and how many.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub uncounted: BTreeMap<String, u64>,
    /// Whether tables for people have it.
    #[serde(skip)]
    pub headline: bool,
}

impl MetricTable {
    /// The table of answers and their scores, which are in the same order.
    pub fn new(found: &AnswerSet, scores: &[AnswerScores], metrics: &[Metric]) -> Self {
        let mut models: Vec<&str> = Vec::new();
        let lost = found.missing.iter().map(|m| m.model.as_str());
        for model in found.answers.iter().map(|a| a.model.as_str()).chain(lost) {
            if !models.contains(&model) {
                models.push(model);
            }
        }
        let figures = models.into_iter().map(|model| {
            let own = found.answers.iter().zip(scores);
            let own: Vec<_> = own.filter(|(answer, _)| answer.model == model).collect();
            let lost = found.missing.iter().filter(|m| m.model == model);
            let lost: Vec<_> = lost.collect();
            ModelMetrics::new(model, &own, &lost, metrics)
        });
        Self {
            schema: SCHEMA,
            source: String::new(),
            cases: found.cases,
            unreadable: found.unreadable.len() as u64,
            settings: BTreeMap::new(),
            models: figures.collect(),
        }
    }
}

impl ModelMetrics {
    fn new(
        model: &str,
        answers: &[(&MetricAnswer, &AnswerScores)],
        missing: &[&MissingAnswer],
        metrics: &[Metric],
    ) -> Self {
        let columns: Vec<&MetricColumn> = metrics.iter().flat_map(|m| m.columns()).collect();
        let figure =
            |column: &&MetricColumn| MetricEstimate::of(column, answers, missing.len() as u64);
        Self {
            model: model.to_owned(),
            expected: (answers.len() + missing.len()) as u64,
            answers: answers.len() as u64,
            metrics: columns.par_iter().map(figure).collect(),
        }
    }
}

impl MetricEstimate {
    fn of(column: &MetricColumn, answers: &[(&MetricAnswer, &AnswerScores)], missing: u64) -> Self {
        let mut sample = ColumnSample::default();
        let mut uncounted: BTreeMap<UncountedReason, u64> = BTreeMap::new();
        if missing > 0 {
            uncounted.insert(UncountedReason::NoAnswer, missing);
        }
        for (answer, scores) in answers {
            // A corpus is counted answer by answer, like BLEU-1.
            match scores.get(column.corpus.map_or(column.name, |_| "bleu1")) {
                Some(MetricOutcome::Value(value)) => {
                    sample.push(&answer.cluster, value, scores.bleu)
                }
                Some(MetricOutcome::Uncounted(why)) => *uncounted.entry(why).or_default() += 1,
                Some(MetricOutcome::Elsewhere) | None => {}
            }
        }
        let found = sample.estimate(column);
        let value = found.value.ok();
        let n = sample.len() as u64;
        let lost: u64 = uncounted.values().sum();
        let of = n + lost;
        let bound =
            |worst: f64| (value.unwrap_or(0.0) * n as f64 + worst * lost as f64) / of as f64;
        let bounded =
            of > 0 && column.corpus.is_none() && column.range.iter().all(|end| end.is_finite());
        Self {
            metric: column.name,
            value,
            interval: found.interval.ok(),
            no_interval: value.and(found.interval.err()).map(|why| why.to_string()),
            n,
            of,
            coverage: (of > 0).then(|| n as f64 / of as f64),
            bounds: bounded.then(|| column.range.map(bound)),
            images: found.clusters,
            range: column.range.map(|end| end.is_finite().then_some(end)),
            uncounted: uncounted
                .iter()
                .map(|(why, n)| (why.to_string(), *n))
                .collect(),
            headline: column.headline,
        }
    }
}
