//! Results of all rounds, as text, JSON and SVG.

use serde::Serialize;

use crate::support::files::file_form::{FileForm, has_json_fields, starts_with};
use crate::support::tables::chart::{Axis, Chart, ChartMark, DOTS_DESCRIPTION, label_with_value};
use crate::support::tables::{Table, TableStyle};
use crate::support::terminal::number::{NOT_APPLICABLE, format_percent_with_interval};
use crate::training::measurement::Proportion;

/// Results of one round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Round {
    /// Round number. Round 0 is trained on the initial evaluations.
    pub round: u32,
    /// Number of evaluations in the training data.
    pub evaluations: usize,
    /// Order accuracy on the training cases. A tie counts as an order.
    #[serde(rename = "right")]
    pub accuracy: Proportion,
    /// Number of misjudged pairs.
    #[serde(rename = "wrong")]
    pub misjudged: usize,
    /// Number of labelled pairs without a verdict.
    pub unscored: usize,
    /// Number of pairs without labels.
    #[serde(rename = "unknown")]
    pub unlabelled: usize,
    /// Number of misjudged pairs whose evaluations were replaced or added for the next round;
    /// `None` if no suggestions were requested.
    #[serde(rename = "mended")]
    pub replaced: Option<usize>,
    /// Number of these pairs whose evaluation is by the adviser.
    pub by_adviser: Option<usize>,
    /// Number of these pairs whose evaluation people decided for.
    pub by_people: Option<usize>,
    /// Number of misjudged pairs without an accepted suggestion, which need a decision of people;
    /// `None` if no suggestions were requested.
    #[serde(rename = "left")]
    pub unresolved: Option<usize>,
    /// Order accuracy on the held-out cases, if there are any.
    pub held_out: Option<Proportion>,
}

/// Results of all rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rounds {
    /// The rounds in order.
    pub rounds: Vec<Round>,
}

impl Rounds {
    /// The form of the JSON file.
    pub const JSON_FORM: FileForm = FileForm {
        name: "a result of knowledge introspection",
        recognise: |file| has_json_fields(file, &["rounds"]),
    };
    /// The form of the Markdown file.
    pub const MARKDOWN_FORM: FileForm = FileForm {
        name: "a table of knowledge introspection",
        recognise: |file| starts_with(file, "| round | evaluations | order accuracy"),
    };

    /// Returns a table with one row per round.
    pub fn text(&self, style: TableStyle) -> String {
        let has_held_out = self.rounds.iter().any(|round| round.held_out.is_some());
        let mut header = vec![
            "round",
            "evaluations",
            "order accuracy [95 % CI]",
            "wrong",
            "by adviser",
            "by people",
            "unresolved",
        ];
        header.extend(has_held_out.then_some("held-out order accuracy [95 % CI]"));
        let mut table = Table::new(header);
        let not_applicable = || NOT_APPLICABLE.to_owned();
        let count = |n: Option<usize>| n.map_or_else(not_applicable, |n| n.to_string());
        for round in &self.rounds {
            let mut cells = vec![
                round.round.to_string(),
                round.evaluations.to_string(),
                percent(&round.accuracy),
                round.misjudged.to_string(),
                count(round.by_adviser),
                count(round.by_people),
                count(round.unresolved),
            ];
            if has_held_out {
                cells.push(round.held_out.as_ref().map_or_else(not_applicable, percent));
            }
            table.push_row(cells);
        }
        table.render(style)
    }

    /// Draws the order accuracy of every round, on held-out cases if there are any.
    pub fn svg(&self) -> String {
        let has_held_out = self.rounds.iter().any(|round| round.held_out.is_some());
        let mark = |round: &Round| {
            let accuracy = if has_held_out { round.held_out } else { Some(round.accuracy) };
            let value = accuracy.map(|proportion| proportion.value);
            ChartMark {
                label: label_with_value(&format!("round {}", round.round), value),
                value,
                interval: accuracy.map(|proportion| proportion.interval),
                is_second_series: false,
            }
        };
        let title = if has_held_out {
            "order accuracy on held-out cases"
        } else {
            "order accuracy on training cases"
        };
        let marks: Vec<ChartMark> = self.rounds.iter().map(mark).collect();
        Chart::forest(title, DOTS_DESCRIPTION, &Axis::zoomed(&marks), &marks).to_svg_file()
    }
}

fn percent(proportion: &Proportion) -> String {
    format_percent_with_interval(proportion.value, Some(proportion.interval))
}
