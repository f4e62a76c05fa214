//! The table as a person, a page or a spreadsheet reads it.

use std::fmt::Write as _;

use super::table::{MetricEstimate, MetricTable, ModelMetrics};
use crate::judging::run::summary::percent_down;
use crate::support::terminal::table::Table;
use crate::support::text::{plural, printable};

const HEAD: [&str; 6] = ["metric", "value", "95 % interval", "n", "coverage", "range"];

impl MetricTable {
    /// A table for each model, to read.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.heading());
        for model in &self.models {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\n{}\n", heading(model));
            text.push_str(&grid(model).text());
            for line in uncounted(model).into_iter().chain(unsure(model)) {
                let _ = writeln!(text, "{line}");
            }
        }
        if !self.settings.is_empty() {
            text.push('\n');
        }
        for (name, value) in &self.settings {
            let _ = writeln!(text, "{name}: {value}");
        }
        text
    }

    /// The same in Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("{}\n", self.heading());
        for model in &self.models {
            let _ = writeln!(
                text,
                "\n### {}\n",
                heading(model).replace('|', "\\|").replace('<', "&lt;")
            );
            text.push_str(&grid(model).markdown());
            let lines: Vec<String> = uncounted(model).into_iter().chain(unsure(model)).collect();
            if !lines.is_empty() {
                let _ = writeln!(text, "\n- {}", lines.join("\n- "));
            }
        }
        for (name, value) in &self.settings {
            let _ = writeln!(text, "\n{name}: {value}");
        }
        text
    }

    /// One row for each model and metric, as CSV.
    ///
    /// # Errors
    /// None that is known: the rows are written to memory.
    pub fn csv(&self) -> anyhow::Result<String> {
        let mut grid = Table::new([
            "model", "metric", "value", "low", "high", "n", "of", "coverage", "images", "least",
            "most",
        ]);
        for model in &self.models {
            for figure in &model.metrics {
                let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
                let [low, high] =
                    [0, 1].map(|end| figure.interval.and_then(|i| i.get(end).copied()));
                grid.row([
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
        grid.csv()
    }

    fn heading(&self) -> String {
        let cases = plural(self.cases, "case");
        let mut text = format!("{cases} of {}; more is better in every metric", self.source);
        if self.unreadable > 0 {
            let _ = write!(text, "\n{} unreadable", plural(self.unreadable, "line"));
        }
        text
    }
}

fn grid(model: &ModelMetrics) -> Table {
    let mut grid = Table::new(HEAD);
    for figure in headlines(model) {
        grid.row(cells(figure));
    }
    grid
}

fn headlines(model: &ModelMetrics) -> impl Iterator<Item = &MetricEstimate> {
    model.metrics.iter().filter(|figure| figure.headline)
}

fn heading(model: &ModelMetrics) -> String {
    let given = if model.answers == model.expected {
        plural(model.answers, "answer")
    } else {
        let expected = plural(model.expected, "answer");
        format!("{} of {expected}", model.answers)
    };
    format!("{}: {given}", printable(&model.model))
}

/// What has a number and no interval, and why: a line for each reason.
fn unsure(model: &ModelMetrics) -> Vec<String> {
    let mut lines: Vec<(&str, Vec<&str>)> = Vec::new();
    for figure in headlines(model) {
        let Some(why) = figure.no_interval.as_deref() else {
            continue;
        };
        match lines.iter_mut().find(|(known, _)| *known == why) {
            Some((_, metrics)) => metrics.push(figure.metric),
            None => lines.push((why, vec![figure.metric])),
        }
    }
    let line =
        |(why, metrics): (&str, Vec<&str>)| format!("no interval: {why} ({})", metrics.join(", "));
    lines.into_iter().map(line).collect()
}

/// What has no number, and why: a line for each reason, with the metrics that it concerns.
fn uncounted(model: &ModelMetrics) -> Vec<String> {
    let mut lines: Vec<(u64, &str, Vec<&str>)> = Vec::new();
    for figure in headlines(model) {
        for (why, n) in &figure.uncounted {
            match lines.iter_mut().find(|(m, w, _)| m == n && w == why) {
                Some((_, _, metrics)) => metrics.push(figure.metric),
                None => lines.push((*n, why, vec![figure.metric])),
            }
        }
    }
    let all = headlines(model).count();
    let line = |(n, why, metrics): (u64, &str, Vec<&str>)| {
        let which = if metrics.len() == all {
            "every metric".to_owned()
        } else {
            metrics.join(", ")
        };
        format!("uncounted {n}: {why} ({which})")
    };
    lines.into_iter().map(line).collect()
}

fn cells(figure: &MetricEstimate) -> Vec<String> {
    let none = || "-".to_owned();
    let number = |value: f64| format!("{value:.3}");
    let [least, most] = figure
        .range
        .map(|end| end.map_or_else(|| "∞".to_owned(), |end| end.to_string()));
    let least = least.replace('∞', "-∞");
    vec![
        figure.metric.to_owned(),
        figure.value.map_or_else(none, number),
        figure.interval.map_or_else(none, |[low, high]| {
            format!("{} to {}", number(low), number(high))
        }),
        figure.n.to_string(),
        figure
            .coverage
            .map_or_else(none, |part| format!("{:.0} %", percent_down(part))),
        format!("{least} to {most}"),
    ]
}
