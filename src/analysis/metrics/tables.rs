//! Metrics as text tables and CSV.

use std::fmt::Write as _;

use super::table::{MetricEstimate, MetricTable, ModelMetrics};
use crate::support::tables::{Reasons, Table, TableSection};
use crate::support::terminal::number::{
    NOT_APPLICABLE, format_floor_percent, format_with_interval,
};
use crate::support::text::format_count;

const HEADER: [&str; 5] = ["metric", "value [95 % CI]", "n", "coverage", "range"];

impl MetricTable {
    /// Returns the paragraph above the tables.
    pub fn intro(&self) -> String {
        let cases = format_count(self.cases, "case");
        let mut text = format!("{cases} of {}; higher is better in every metric", self.source);
        if self.unreadable > 0 {
            let _ = write!(text, "\n{} unreadable", format_count(self.unreadable, "line"));
        }
        text
    }

    /// Returns one table per model, and a section of notes with the settings.
    pub fn tables(&self) -> Vec<TableSection> {
        let mut tables: Vec<TableSection> = self.models.iter().map(model_table).collect();
        if !self.settings.is_empty() {
            let settings = self.settings.iter();
            let notes = settings.map(|(name, value)| format!("{name}: {value}"));
            tables.push(TableSection::default().with_notes(notes.collect()));
        }
        tables
    }

    /// Returns one row per model and metric.
    pub fn csv_table(&self) -> Table {
        let mut table = Table::new([
            "model", "metric", "value", "low", "high", "n", "of", "coverage", "images", "least",
            "most",
        ]);
        for model in &self.models {
            for estimate in &model.metrics {
                let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
                let [low, high] =
                    [0, 1].map(|bound| estimate.interval.and_then(|i| i.get(bound).copied()));
                table.push_row([
                    model.model.clone(),
                    estimate.metric.to_owned(),
                    number(estimate.value),
                    number(low),
                    number(high),
                    estimate.n.to_string(),
                    estimate.of.to_string(),
                    number(estimate.coverage),
                    estimate.images.to_string(),
                    number(estimate.range[0]),
                    number(estimate.range[1]),
                ]);
            }
        }
        table
    }
}

fn model_table(model: &ModelMetrics) -> TableSection {
    let mut table = Table::new(HEADER);
    for metric in headline_metrics(model) {
        table.push_row(metric_cells(metric));
    }
    let answers = if model.answers == model.expected {
        format_count(model.answers, "answer")
    } else {
        let expected = format_count(model.expected, "answer");
        format!("{} of {expected}", model.answers)
    };
    let notes = uncounted_notes(model).into_iter().chain(no_interval_notes(model));
    TableSection::new(format!("{}: {answers}", model.model), table).with_notes(notes.collect())
}

fn headline_metrics(model: &ModelMetrics) -> impl Iterator<Item = &MetricEstimate> {
    model.metrics.iter().filter(|metric| metric.is_headline)
}

/// Describes the metrics with a value and no interval, one line per reason.
fn no_interval_notes(model: &ModelMetrics) -> Vec<String> {
    let reasons: Reasons = headline_metrics(model)
        .filter_map(|metric| Some((metric.metric, metric.no_interval.clone()?)))
        .collect();
    let note = |(reason, metrics): (String, Vec<String>)| {
        format!("no interval: {reason} ({})", metrics.join(", "))
    };
    reasons.into_groups().into_iter().map(note).collect()
}

/// Describes the answers without a value, one line per reason and number.
fn uncounted_notes(model: &ModelMetrics) -> Vec<String> {
    let reasons: Reasons = headline_metrics(model)
        .flat_map(|metric| {
            let counts = metric.uncounted.iter();
            counts.map(|(reason, n)| {
                let answers = format_count(*n, "answer");
                (metric.metric, format!("{answers} not counted: {reason}"))
            })
        })
        .collect();
    let all = headline_metrics(model).count();
    let note = |(reason, metrics): (String, Vec<String>)| {
        let metrics =
            if metrics.len() == all { "every metric".to_owned() } else { metrics.join(", ") };
        format!("{reason} ({metrics})")
    };
    reasons.into_groups().into_iter().map(note).collect()
}

fn metric_cells(metric: &MetricEstimate) -> [String; 5] {
    let number = |value: f64| format!("{value:.3}");
    let missing = || NOT_APPLICABLE.to_owned();
    let interval = metric.interval.map(|bounds| bounds.map(number));
    let [low, high] = metric.range;
    let bound = |bound: Option<f64>, unbounded: &str| {
        bound.map_or(unbounded.to_owned(), |value| value.to_string())
    };
    [
        metric.metric.to_owned(),
        metric.value.map_or_else(missing, |value| format_with_interval(&number(value), interval)),
        metric.n.to_string(),
        metric.coverage.map_or_else(missing, format_floor_percent),
        format!("{} to {}", bound(low, "-∞"), bound(high, "∞")),
    ]
}
