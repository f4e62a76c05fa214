//! The rounds as a table.

use serde::Serialize;

use crate::support::chart::{Axis, Chart, ChartMark, DOTS, labelled};
use crate::support::terminal::table::Table;
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
    /// The table to read, or as Markdown.
    pub fn text(&self, markdown: bool) -> String {
        let held = self.rounds.iter().any(|round| round.held_out.is_some());
        let mut head = vec![
            "round",
            "evaluations",
            "order right",
            "wrong",
            "mended",
            "left",
        ];
        head.extend(held.then_some("held out right"));
        let mut grid = Table::new(head);
        let count = |n: Option<usize>| n.map_or("-".to_owned(), |n| n.to_string());
        for round in &self.rounds {
            let mut cells = vec![
                round.round.to_string(),
                round.evaluations.to_string(),
                percent(&round.right),
                round.wrong.to_string(),
                count(round.mended),
                count(round.left),
            ];
            if held {
                cells.push(round.held_out.as_ref().map_or("-".to_owned(), percent));
            }
            grid.row(cells);
        }
        if markdown {
            grid.markdown()
        } else {
            grid.text()
        }
    }

    /// The share of right orders of every round, drawn: of cases held out, where there are any.
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
                label: labelled(&format!("round {}", round.round), value),
                value,
                interval: right.map(|share| share.interval),
                second: false,
            }
        };
        let title = if held {
            "order right, cases held out"
        } else {
            "order right, the cases that are learned from"
        };
        let marks: Vec<ChartMark> = self.rounds.iter().map(mark).collect();
        Chart::forest(title, DOTS, &Axis::around(&marks), &marks).file()
    }
}

fn percent(share: &Proportion) -> String {
    let [low, high] = share.interval.map(|end| 100.0 * end);
    format!("{:.1} % ({low:.1} to {high:.1})", 100.0 * share.value)
}
