//! Results of all rounds, as a table and a chart.

use serde::Serialize;

use crate::support::chart::{Axis, Chart, ChartMark, DOTS, label_with_value};
use crate::support::tables::{Table, TableStyle};
use crate::support::terminal::number::{NOT_APPLICABLE, percent_with_interval};
use crate::training::measurement::Proportion;

/// Results of one round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Round {
    /// Round number; round 0 is trained on the given data.
    pub round: u32,
    /// Number of evaluations in the training data.
    pub evaluations: usize,
    /// Order accuracy on the training cases; a tie is an order.
    pub right: Proportion,
    /// Number of misjudged pairs.
    pub wrong: usize,
    /// Number of labelled pairs without a verdict.
    pub unscored: usize,
    /// Number of pairs without labels.
    pub unknown: usize,
    /// Number of misjudged pairs whose evaluations were replaced for the next round.
    pub mended: Option<usize>,
    /// Number of misjudged pairs without an accepted suggestion; they need manual review.
    pub left: Option<usize>,
    /// Order accuracy on the held-out cases.
    pub held_out: Option<Proportion>,
}

/// Results of all rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rounds {
    /// The rounds in order.
    pub rounds: Vec<Round>,
}

impl Rounds {
    /// Returns one row per round.
    pub fn text(&self, style: TableStyle) -> String {
        let has_held_out = self.rounds.iter().any(|round| round.held_out.is_some());
        let mut header = vec![
            "round",
            "evaluations",
            "order accuracy [95 % CI]",
            "wrong",
            "replaced",
            "unresolved",
        ];
        header.extend(has_held_out.then_some("held-out order accuracy [95 % CI]"));
        let mut table = Table::new(header);
        let missing = || NOT_APPLICABLE.to_owned();
        let count = |n: Option<usize>| n.map_or_else(missing, |n| n.to_string());
        for round in &self.rounds {
            let mut cells = vec![
                round.round.to_string(),
                round.evaluations.to_string(),
                percent(&round.right),
                round.wrong.to_string(),
                count(round.mended),
                count(round.left),
            ];
            if has_held_out {
                cells.push(round.held_out.as_ref().map_or_else(missing, percent));
            }
            table.row(cells);
        }
        table.render(style)
    }

    /// Draws the order accuracy of every round, on held-out cases if there are any.
    pub fn svg(&self) -> String {
        let held = self.rounds.iter().any(|round| round.held_out.is_some());
        let mark = |round: &Round| {
            let right = if held {
                round.held_out
            } else {
                Some(round.right)
            };
            let value = right.map(|share| share.value);
            ChartMark {
                label: label_with_value(&format!("round {}", round.round), value),
                value,
                interval: right.map(|share| share.interval),
                second: false,
            }
        };
        let title = if held {
            "order accuracy on held-out cases"
        } else {
            "order accuracy on training cases"
        };
        let marks: Vec<ChartMark> = self.rounds.iter().map(mark).collect();
        Chart::forest(title, DOTS, &Axis::zoomed(&marks), &marks).to_svg_file()
    }
}

fn percent(proportion: &Proportion) -> String {
    percent_with_interval(proportion.value, Some(proportion.interval))
}
