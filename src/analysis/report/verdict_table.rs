//! Table with one row per pair and judge (CSV and Parquet output).

use std::collections::HashMap;

use super::browser::{BrowserEntry, CaseBrowser};
use crate::analysis::report::record_summary::OutcomeSummary;
use crate::analysis::report::report_data::ReportData;
use crate::analysis::verdicts::PairVerdict;
use crate::data::labels::ScoreTarget;
use crate::judging::judge::recorded_verdict::PairOrder;
use crate::support::tables::Table;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Text.
    Text,
    /// Floating-point number.
    Number,
    /// Integer.
    Whole,
    /// Boolean.
    Flag,
}

/// Value of a cell; a missing value is `None` instead.
#[derive(Clone, Debug, PartialEq)]
pub enum CellValue {
    /// Text.
    Text(String),
    /// Floating-point number.
    Number(f64),
    /// Integer.
    Whole(i64),
    /// Boolean.
    Flag(bool),
}

/// Table of all verdicts, with named and typed columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerdictTable {
    /// Names and types of the columns.
    pub head: Vec<(String, ColumnType)>,
    /// Rows; each has one cell per column.
    pub rows: Vec<Vec<Option<CellValue>>>,
}

/// Columns before the scores.
const HEAD: [(&str, ColumnType); 19] = [
    ("judge", ColumnType::Text),
    ("judge_name", ColumnType::Text),
    ("case", ColumnType::Text),
    ("line", ColumnType::Whole),
    ("model_a", ColumnType::Text),
    ("model_b", ColumnType::Text),
    ("status", ColumnType::Text),
    ("reason", ColumnType::Text),
    ("message", ColumnType::Text),
    ("order", ColumnType::Text),
    ("flip", ColumnType::Flag),
    ("label", ColumnType::Text),
    ("image", ColumnType::Text),
    ("question", ColumnType::Text),
    ("reference", ColumnType::Text),
    ("answer_a", ColumnType::Text),
    ("answer_b", ColumnType::Text),
    ("words_a", ColumnType::Whole),
    ("words_b", ColumnType::Whole),
];

impl VerdictTable {
    /// Builds the rows of all judges.
    pub fn of(report: &ReportData, browser: &CaseBrowser) -> Self {
        let scores = ScoreTarget::all()
            .map(ScoreTarget::key)
            .flat_map(|key| ["a", "b"].map(|side| (format!("{key}_{side}"), ColumnType::Number)));
        let head = HEAD.map(|(name, kind)| (name.to_owned(), kind));
        let mut rows = Vec::new();
        for (number, judge) in report.judges.iter().enumerate() {
            let mut verdicts: HashMap<(&str, [&str; 2]), &PairVerdict> = HashMap::new();
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

    /// Returns the rows as text; missing values are empty.
    pub fn csv_table(&self) -> Table {
        let mut table = Table::new(self.head.iter().map(|(name, _)| name.clone()));
        for row in &self.rows {
            table.row(row.iter().map(|cell| match cell {
                None => String::new(),
                Some(CellValue::Text(text)) => text.clone(),
                Some(CellValue::Number(value)) => value.to_string(),
                Some(CellValue::Whole(value)) => value.to_string(),
                Some(CellValue::Flag(value)) => value.to_string(),
            }));
        }
        table
    }
}

fn sorted(pair: &[String; 2]) -> [&str; 2] {
    let mut names = pair.each_ref().map(String::as_str);
    names.sort_unstable();
    names
}

fn text(text: &str) -> CellValue {
    CellValue::Text(text.to_owned())
}

fn sign(order: PairOrder) -> CellValue {
    text(match order {
        PairOrder::FirstBetter => ">",
        PairOrder::Tie => "=",
        PairOrder::SecondBetter => "<",
    })
}

/// Returns the cells from `case` to `answer_b`: the input and the outcome.
fn told(entry: &BrowserEntry, brief: &OutcomeSummary) -> Vec<Option<CellValue>> {
    let model = |side: usize| entry.models.get(side).map(|name| text(name));
    let [status, reason, message, order, flip] = match brief {
        OutcomeSummary::Judged { order, flip, .. } => {
            let flip = flip.map(CellValue::Flag);
            [Some(text("judged")), None, None, Some(sign(*order)), flip]
        }
        OutcomeSummary::Unscored { reason, message } => {
            let reason = text(reason.name());
            let told = Some(text(message));
            [Some(text("unscored")), Some(reason), told, None, None]
        }
    };
    let answer = |side: usize| Some(text(entry.answers.as_ref()?.get(side)?));
    let given = |value: &Option<String>| value.as_deref().map(text);
    vec![
        given(&entry.case),
        i64::try_from(entry.line).ok().map(CellValue::Whole),
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

/// Returns the cells of word counts and scores, in the model order of the entry.
fn scored(entry: &BrowserEntry, verdict: Option<&PairVerdict>) -> Vec<Option<CellValue>> {
    let turned = verdict.is_some_and(|v| v.pair.first() != entry.models.first());
    let sides = if turned { [1, 0] } else { [0, 1] };
    let words = verdict.map(|v| v.words);
    let count = |side: usize| i64::try_from(words?[side]).ok().map(CellValue::Whole);
    let mut cells: Vec<Option<CellValue>> = sides.map(count).into();
    for target in ScoreTarget::all() {
        let scores = verdict.and_then(|v| v.scores.as_ref()?.get(&target));
        cells.extend(sides.map(|side| scores.map(|pair| CellValue::Number(pair[side]))));
    }
    cells
}
