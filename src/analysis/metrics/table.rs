//! Results of the metrics by model.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::{Serialize, Serializer};

use super::metric::{Metric, MetricColumn};
use super::outcome::{AnswerScores, MetricOutcome, UncountedReason};
use super::sample::ColumnSample;
use crate::analysis::metrics::answers::answer::{AnswerSet, MetricAnswer, MissingAnswer};

/// Schema version of the JSON output. Fields are added, never renamed.
const SCHEMA: u32 = 1;

/// Results of all models.
#[derive(Clone, Debug, Serialize)]
pub struct MetricTable {
    /// Schema version.
    pub schema: u32,
    /// Source, as given on the command line.
    pub source: String,
    /// Number of valid cases.
    pub cases: u64,
    /// Number of unreadable lines whose model is unknown.
    pub unreadable: u64,
    /// Settings that affect the results, by name.
    pub settings: BTreeMap<String, String>,
    /// Models, in the order of their first answers.
    pub models: Vec<ModelMetrics>,
}

/// Results of one model.
#[derive(Clone, Debug, Serialize)]
pub struct ModelMetrics {
    /// Name of the model.
    pub model: String,
    /// Number of expected answers.
    pub expected: u64,
    /// Number of answers.
    pub answers: u64,
    /// One value per column.
    pub metrics: Vec<MetricEstimate>,
}

/// Result of one model in one column.
#[derive(Clone, Debug, Serialize)]
pub struct MetricEstimate {
    /// Name of the column.
    pub metric: &'static str,
    /// Mean, or corpus BLEU; `None` if undefined.
    pub value: Option<f64>,
    /// 95 % bootstrap interval, clustered by image. Wilson interval for proportions with few images
    /// and for proportions of 0 or 1. `None` if undefined.
    pub interval: Option<[f64; 2]>,
    /// Reason if there is a value but no interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_interval: Option<String>,
    /// Number of answers with a value.
    pub n: u64,
    /// Number of answers to which the metric applies.
    pub of: u64,
    /// Proportion of those answers that have a value; `None` without such answers.
    pub coverage: Option<f64>,
    /// Bounds of the mean: every answer without a value gets the smallest or the largest possible
    /// value. `None` if the range is unbounded.
    pub bounds: Option<[f64; 2]>,
    /// Number of images.
    pub images: usize,
    /// Smallest and largest possible value; `null` if unbounded. Higher is better.
    pub range: [Option<f64>; 2],
    /// Number of answers without a value, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", serialize_with = "serialize_uncounted")]
    pub uncounted: BTreeMap<UncountedReason, u64>,
    /// True if text tables show the column.
    #[serde(skip)]
    pub is_headline: bool,
}

impl MetricTable {
    /// Builds the table from answers and their scores, which are in the same order.
    pub fn new(answers: &AnswerSet, scores: &[AnswerScores], metrics: &[Metric]) -> Self {
        let mut models: Vec<&str> = Vec::new();
        let missing = answers.missing.iter().map(|m| m.model.as_str());
        for model in answers.answers.iter().map(|a| a.model.as_str()).chain(missing) {
            if !models.contains(&model) {
                models.push(model);
            }
        }
        let model_metrics = models.into_iter().map(|model| {
            let scored = answers.answers.iter().zip(scores);
            let scored: Vec<_> = scored.filter(|(answer, _)| answer.model == model).collect();
            let missing = answers.missing.iter().filter(|m| m.model == model);
            let missing: Vec<_> = missing.collect();
            ModelMetrics::new(model, &scored, &missing, metrics)
        });
        Self {
            schema: SCHEMA,
            source: String::new(),
            cases: answers.cases,
            unreadable: answers.unreadable.len() as u64,
            settings: BTreeMap::new(),
            models: model_metrics.collect(),
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
        let estimate = |column: &&MetricColumn| {
            MetricEstimate::estimate(column, answers, missing.len() as u64)
        };
        Self {
            model: model.to_owned(),
            expected: (answers.len() + missing.len()) as u64,
            answers: answers.len() as u64,
            metrics: columns.par_iter().map(estimate).collect(),
        }
    }
}

impl MetricEstimate {
    fn estimate(
        column: &MetricColumn,
        answers: &[(&MetricAnswer, &AnswerScores)],
        missing: u64,
    ) -> Self {
        let mut sample = ColumnSample::default();
        let mut uncounted: BTreeMap<UncountedReason, u64> = BTreeMap::new();
        if missing > 0 {
            uncounted.insert(UncountedReason::NoAnswer, missing);
        }
        for (answer, scores) in answers {
            // Corpus BLEU applies to the same answers as BLEU-1.
            match scores.get(column.corpus_order.map_or(column.name, |_| "bleu1")) {
                Some(MetricOutcome::Value(value)) => {
                    sample.push(&answer.cluster, value, scores.bleu);
                }
                Some(MetricOutcome::Uncounted(reason)) => {
                    *uncounted.entry(reason).or_default() += 1;
                }
                Some(MetricOutcome::NotApplicable) | None => {}
            }
        }
        let estimate = sample.estimate(column);
        let value = estimate.value.ok();
        let n = sample.len() as u64;
        let without_value: u64 = uncounted.values().sum();
        let of = n + without_value;
        let bound = |missing_value: f64| {
            (value.unwrap_or(0.0) * n as f64 + missing_value * without_value as f64) / of as f64
        };
        let is_bounded = of > 0
            && column.corpus_order.is_none()
            && column.range.iter().all(|end| end.is_finite());
        Self {
            metric: column.name,
            value,
            interval: estimate.interval.ok(),
            no_interval: value.and(estimate.interval.err()).map(|reason| reason.to_string()),
            n,
            of,
            coverage: (of > 0).then(|| n as f64 / of as f64),
            bounds: is_bounded.then(|| column.range.map(bound)),
            images: estimate.clusters,
            range: column.range.map(|end| end.is_finite().then_some(end)),
            uncounted,
            is_headline: column.is_headline,
        }
    }
}

/// Serializes the counts under the keys of the reasons, sorted by key.
fn serialize_uncounted<S: Serializer>(
    uncounted: &BTreeMap<UncountedReason, u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let by_key: BTreeMap<&str, u64> = uncounted.iter().map(|(r, n)| (r.key(), *n)).collect();
    by_key.serialize(serializer)
}
