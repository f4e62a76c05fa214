//! Metrics as tables to read, and for CSV.

use std::fmt::Write as _;

use super::table::{MetricEstimate, MetricTable, ModelMetrics};
use crate::support::tables::{Reasons, Table, TableSection};
use crate::support::terminal::number::{NOT_APPLICABLE, floor_percent, with_interval};
use crate::support::text::plural;

const HEADER: [&str; 5] = ["metric", "value [95 % CI]", "n", "coverage", "range"];

impl MetricTable {
    /// Returns the paragraph above the tables.
    pub fn intro(&self) -> String {
        let cases = plural(self.cases, "case");
        let mut text = format!(
            "{cases} of {}; higher is better in every metric",
            self.source
        );
        if self.unreadable > 0 {
            let _ = write!(text, "\n{} unreadable", plural(self.unreadable, "line"));
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
            for figure in &model.metrics {
                let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
                let [low, high] =
                    [0, 1].map(|end| figure.interval.and_then(|i| i.get(end).copied()));
                table.row([
                    model.model.clone(),
                    figure.metric.to_owned(),
                    number(figure.value),
                    number(low),
                    number(high),
                    figure.n.to_string(),
                    figure.of.to_string(),
                    number(figure.coverage),
                    figure.images.to_string(),
                    number(figure.range[0]),
                    number(figure.range[1]),
                ]);
            }
        }
        table
    }
}

fn model_table(model: &ModelMetrics) -> TableSection {
    let mut table = Table::new(HEADER);
    for metric in headlines(model) {
        table.row(cells(metric));
    }
    let answers = if model.answers == model.expected {
        plural(model.answers, "answer")
    } else {
        let expected = plural(model.expected, "answer");
        format!("{} of {expected}", model.answers)
    };
    let notes = not_counted(model).into_iter().chain(no_interval(model));
    TableSection::new(format!("{}: {answers}", model.model), table).with_notes(notes.collect())
}

fn headlines(model: &ModelMetrics) -> impl Iterator<Item = &MetricEstimate> {
    model.metrics.iter().filter(|metric| metric.headline)
}

/// Metrics with a value and no interval, one line per reason.
fn no_interval(model: &ModelMetrics) -> Vec<String> {
    let reasons: Reasons = headlines(model)
        .filter_map(|metric| Some((metric.metric, metric.no_interval.clone()?)))
        .collect();
    let note = |(reason, metrics): (String, Vec<String>)| {
        format!("no interval: {reason} ({})", metrics.join(", "))
    };
    reasons.into_groups().into_iter().map(note).collect()
}

/// Answers without a value, one line per reason and number.
fn not_counted(model: &ModelMetrics) -> Vec<String> {
    let reasons: Reasons = headlines(model)
        .flat_map(|metric| {
            let counts = metric.uncounted.iter();
            counts.map(|(reason, n)| {
                let answers = plural(*n, "answer");
                (metric.metric, format!("{answers} not counted: {reason}"))
            })
        })
        .collect();
    let all = headlines(model).count();
    let note = |(reason, metrics): (String, Vec<String>)| {
        let metrics = if metrics.len() == all {
            "every metric".to_owned()
        } else {
            metrics.join(", ")
        };
        format!("{reason} ({metrics})")
    };
    reasons.into_groups().into_iter().map(note).collect()
}

fn cells(metric: &MetricEstimate) -> [String; 5] {
    let number = |value: f64| format!("{value:.3}");
    let missing = || NOT_APPLICABLE.to_owned();
    let interval = metric.interval.map(|ends| ends.map(number));
    let [low, high] = metric.range;
    let end =
        |end: Option<f64>, unbounded: &str| end.map_or(unbounded.to_owned(), |e| e.to_string());
    [
        metric.metric.to_owned(),
        metric
            .value
            .map_or_else(missing, |value| with_interval(&number(value), interval)),
        metric.n.to_string(),
        metric.coverage.map_or_else(missing, floor_percent),
        format!("{} to {}", end(low, "-∞"), end(high, "∞")),
    ]
}
