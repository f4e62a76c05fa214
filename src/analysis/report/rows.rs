//! A row for every pair and judge, for spreadsheets and data frames.

use std::collections::HashMap;

use super::browser::{Browser, Entry};
use super::figures::Report;
use super::seen::Brief;
use crate::analysis::verdicts::Verdict;
use crate::data::labels::Target;
use crate::judging::judge::judgement::Order;
use crate::judging::summary::reason_name;
use crate::support::terminal::grid::Grid;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Texts.
    Text,
    /// Numbers.
    Number,
    /// Whole numbers.
    Whole,
    /// Yes or no.
    Flag,
}

/// A value; `None` in its place where it is absent.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
    /// A whole number.
    Whole(i64),
    /// Yes or no.
    Flag(bool),
}

/// Columns with names and kinds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// The names and kinds of the columns.
    pub head: Vec<(String, Kind)>,
    /// The rows; each has as many cells as there are columns.
    pub rows: Vec<Vec<Option<Cell>>>,
}

/// The columns before the scores.
const HEAD: [(&str, Kind); 19] = [
    ("judge", Kind::Text),
    ("judge_name", Kind::Text),
    ("case", Kind::Text),
    ("line", Kind::Whole),
    ("model_a", Kind::Text),
    ("model_b", Kind::Text),
    ("status", Kind::Text),
    ("reason", Kind::Text),
    ("message", Kind::Text),
    ("order", Kind::Text),
    ("flip", Kind::Flag),
    ("label", Kind::Text),
    ("image", Kind::Text),
    ("question", Kind::Text),
    ("reference", Kind::Text),
    ("answer_a", Kind::Text),
    ("answer_b", Kind::Text),
    ("words_a", Kind::Whole),
    ("words_b", Kind::Whole),
];

impl Rows {
    /// The rows of all judges.
    pub fn of(report: &Report, browser: &Browser) -> Self {
        let scores = Target::all()
            .map(Target::key)
            .flat_map(|key| ["a", "b"].map(|side| (format!("{key}_{side}"), Kind::Number)));
        let head = HEAD.map(|(name, kind)| (name.to_owned(), kind));
        let mut rows = Vec::new();
        for (number, judge) in report.judges.iter().enumerate() {
            let mut verdicts: HashMap<(&str, [&str; 2]), &Verdict> = HashMap::new();
            for verdict in &judge.verdicts.pairs {
                verdicts.insert((&verdict.case, sorted(&verdict.pair)), verdict);
            }
            for entry in &browser.entries {
                let Some(Some(brief)) = entry.verdicts.get(number) else {
                    continue;
                };
                let pair: Option<&[String; 2]> = entry.models.as_slice().try_into().ok();
                let key = entry.case.as_deref().zip(pair.map(sorted));
                let verdict = key.and_then(|key| verdicts.get(&key).copied());
                let mut row = vec![Some(text(&judge.judge)), Some(text(&judge.name))];
                row.extend(told(entry, brief));
                row.extend(scored(entry, verdict));
                rows.push(row);
            }
        }
        Self {
            head: head.into_iter().chain(scores).collect(),
            rows,
        }
    }

    /// The rows as texts; what is absent is an empty one.
    pub fn grid(&self) -> Grid {
        let mut grid = Grid::new(self.head.iter().map(|(name, _)| name.clone()));
        for row in &self.rows {
            grid.row(row.iter().map(|cell| match cell {
                None => String::new(),
                Some(Cell::Text(text)) => text.clone(),
                Some(Cell::Number(value)) => value.to_string(),
                Some(Cell::Whole(value)) => value.to_string(),
                Some(Cell::Flag(value)) => value.to_string(),
            }));
        }
        grid
    }
}

fn sorted(pair: &[String; 2]) -> [&str; 2] {
    let mut names = pair.each_ref().map(String::as_str);
    names.sort_unstable();
    names
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

fn sign(order: Order) -> Cell {
    text(match order {
        Order::Greater => ">",
        Order::Equal => "=",
        Order::Less => "<",
    })
}

/// The columns of what was judged and what came of it.
fn told(entry: &Entry, brief: &Brief) -> Vec<Option<Cell>> {
    let model = |side: usize| entry.models.get(side).map(|name| text(name));
    let [status, reason, message, order, flip] = match brief {
        Brief::Judged { order, flip, .. } => {
            let flip = flip.map(Cell::Flag);
            [Some(text("judged")), None, None, Some(sign(*order)), flip]
        }
        Brief::Unscored { reason, message } => {
            let reason = text(&reason_name(*reason));
            let told = Some(text(message));
            [Some(text("unscored")), Some(reason), told, None, None]
        }
    };
    let answer = |side: usize| Some(text(entry.answers.as_ref()?.get(side)?));
    let given = |value: &Option<String>| value.as_deref().map(text);
    vec![
        given(&entry.case),
        i64::try_from(entry.line).ok().map(Cell::Whole),
        model(0),
        model(1),
        status,
        reason,
        message,
        order,
        flip,
        entry.label.map(sign),
        given(&entry.image),
        given(&entry.question),
        given(&entry.reference),
        answer(0),
        answer(1),
    ]
}

/// The columns of lengths and scores, on the sides on which the entry has its models.
fn scored(entry: &Entry, verdict: Option<&Verdict>) -> Vec<Option<Cell>> {
    let turned = verdict.is_some_and(|v| v.pair.first() != entry.models.first());
    let sides = if turned { [1, 0] } else { [0, 1] };
    let words = verdict.map(|v| v.words);
    let count = |side: usize| i64::try_from(words?[side]).ok().map(Cell::Whole);
    let mut cells: Vec<Option<Cell>> = sides.map(count).into();
    for target in Target::all() {
        let scores = verdict.and_then(|v| v.scores.as_ref()?.get(&target));
        cells.extend(sides.map(|side| scores.map(|pair| Cell::Number(pair[side]))));
    }
    cells
}
