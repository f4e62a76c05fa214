//! The rounds as a table.

use serde::Serialize;

use crate::support::chart::{Axis, Chart, ChartMark, DOTS, label_with_value};
use crate::support::tables::{Table, TableStyle};
use crate::support::terminal::number::{NOT_APPLICABLE, percent_with_interval};
use crate::training::measurement::Proportion;

/// What one round amounts to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Round {
    /// Its number; 0 learned from the data as they were given.
    pub round: u32,
    /// Evaluations that its panel learned from.
    pub evaluations: usize,
    /// How many orders of the cases its panel judges right, a tie being an order.
    pub right: Proportion,
    /// How many pairs it judges wrong.
    pub wrong: usize,
    /// Pairs with known scores that it gives no verdict on.
    pub unscored: usize,
    /// Verdicts on pairs of which nothing is known.
    pub unknown: usize,
    /// Pairs judged wrong whose evaluations were mended for the next round.
    pub mended: Option<usize>,
    /// Pairs judged wrong on which no suggestion agreed with what is known; a person is to decide.
    pub left: Option<usize>,
    /// The same share of the cases held out.
    pub held_out: Option<Proportion>,
}

/// All rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rounds {
    /// In order.
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
