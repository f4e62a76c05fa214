//! Table with one row per pair and judge (CSV and Parquet output).

use std::collections::HashMap;

use crate::analysis::report::page::browser::{BrowserEntry, CaseBrowser};
use crate::analysis::report::report_data::ReportData;
use crate::analysis::report::verdicts::record_summary::OutcomeSummary;
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
    Integer,
    /// Boolean.
    Boolean,
}

/// Value of a cell; a missing value is `None` instead.
#[derive(Clone, Debug, PartialEq)]
pub enum CellValue {
    /// Text.
    Text(String),
    /// Floating-point number.
    Number(f64),
    /// Integer.
    Integer(i64),
    /// Boolean.
    Boolean(bool),
}

/// Table of all verdicts, with named and typed columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerdictTable {
    /// Names and types of the columns.
    pub columns: Vec<(String, ColumnType)>,
    /// Rows; each has one cell per column.
    pub rows: Vec<Vec<Option<CellValue>>>,
}

/// Columns before the scores.
const FIXED_COLUMNS: [(&str, ColumnType); 19] = [
    ("judge", ColumnType::Text),
    ("judge_name", ColumnType::Text),
    ("case", ColumnType::Text),
    ("line", ColumnType::Integer),
    ("model_a", ColumnType::Text),
    ("model_b", ColumnType::Text),
    ("status", ColumnType::Text),
    ("reason", ColumnType::Text),
    ("message", ColumnType::Text),
    ("order", ColumnType::Text),
    ("flip", ColumnType::Boolean),
    ("label", ColumnType::Text),
    ("image", ColumnType::Text),
    ("question", ColumnType::Text),
    ("reference", ColumnType::Text),
    ("answer_a", ColumnType::Text),
    ("answer_b", ColumnType::Text),
    ("words_a", ColumnType::Integer),
    ("words_b", ColumnType::Integer),
];

impl VerdictTable {
    /// Builds the rows of all judges.
    pub fn new(report: &ReportData, browser: &CaseBrowser) -> Self {
        let scores = ScoreTarget::all()
            .map(ScoreTarget::key)
            .flat_map(|key| ["a", "b"].map(|side| (format!("{key}_{side}"), ColumnType::Number)));
        let fixed = FIXED_COLUMNS.map(|(name, column_type)| (name.to_owned(), column_type));
        let mut rows = Vec::new();
        for (judge_index, judge) in report.judges.iter().enumerate() {
            let mut verdicts: HashMap<(&str, [&str; 2]), &PairVerdict> = HashMap::new();
            for verdict in &judge.verdicts.pairs {
                verdicts.insert((&verdict.case, sorted_models(&verdict.pair)), verdict);
            }
            for entry in &browser.entries {
                let Some(Some(outcome)) = entry.verdicts.get(judge_index) else {
                    continue;
                };
                let pair: Option<&[String; 2]> = entry.models.as_slice().try_into().ok();
                let key = entry.case.as_deref().zip(pair.map(sorted_models));
                let verdict = key.and_then(|key| verdicts.get(&key).copied());
                let mut row = vec![Some(text_cell(&judge.judge)), Some(text_cell(&judge.name))];
                row.extend(subject_cells(entry, outcome));
                row.extend(score_cells(entry, verdict, outcome));
                rows.push(row);
            }
        }
        Self { columns: fixed.into_iter().chain(scores).collect(), rows }
    }

    /// Returns the rows as text; missing values are empty.
    pub fn csv_table(&self) -> Table {
        let mut table = Table::new(self.columns.iter().map(|(name, _)| name.clone()));
        for row in &self.rows {
            table.push_row(row.iter().map(|cell| match cell {
                None => String::new(),
                Some(CellValue::Text(text)) => text.clone(),
                Some(CellValue::Number(value)) => value.to_string(),
                Some(CellValue::Integer(value)) => value.to_string(),
                Some(CellValue::Boolean(value)) => value.to_string(),
            }));
        }
        table
    }
}

fn sorted_models(pair: &[String; 2]) -> [&str; 2] {
    let mut names = pair.each_ref().map(String::as_str);
    names.sort_unstable();
    names
}

fn text_cell(text: &str) -> CellValue {
    CellValue::Text(text.to_owned())
}

fn order_cell(order: PairOrder) -> CellValue {
    text_cell(match order {
        PairOrder::FirstBetter => ">",
        PairOrder::Tie => "=",
        PairOrder::SecondBetter => "<",
    })
}

/// Returns the cells from `case` to `answer_b`: the input and the outcome.
fn subject_cells(entry: &BrowserEntry, outcome: &OutcomeSummary) -> Vec<Option<CellValue>> {
    let model = |side: usize| entry.models.get(side).map(|name| text_cell(name));
    let [status, reason, message, order, flip] = match outcome {
        OutcomeSummary::Judged { order, flip, .. } => {
            let flip = flip.map(CellValue::Boolean);
            [Some(text_cell("judged")), None, None, order.map(order_cell), flip]
        }
        OutcomeSummary::Unscored { reason, message } => {
            let reason = text_cell(reason.name());
            let message = Some(text_cell(message));
            [Some(text_cell("unscored")), Some(reason), message, None, None]
        }
    };
    let answer = |side: usize| Some(text_cell(entry.answers.as_ref()?.get(side)?));
    let optional = |value: &Option<String>| value.as_deref().map(text_cell);
    vec![
        optional(&entry.case),
        i64::try_from(entry.line).ok().map(CellValue::Integer),
        model(0),
        model(1),
        status,
        reason,
        message,
        order,
        flip,
        entry.label.map(order_cell),
        optional(&entry.image),
        optional(&entry.question),
        optional(&entry.reference),
        answer(0),
        answer(1),
    ]
}

/// Returns the cells of word counts and scores, in the model order of the entry.
/// Returns the final score of a response that was judged alone.
fn alone_score(outcome: &OutcomeSummary, side: usize) -> Option<f64> {
    match outcome {
        OutcomeSummary::Judged { scores, .. } => scores.get(side).copied(),
        OutcomeSummary::Unscored { .. } => None,
    }
}

fn score_cells(
    entry: &BrowserEntry,
    verdict: Option<&PairVerdict>,
    outcome: &OutcomeSummary,
) -> Vec<Option<CellValue>> {
    let is_swapped = verdict.is_some_and(|v| v.pair.first() != entry.models.first());
    let sides = if is_swapped { [1, 0] } else { [0, 1] };
    let words = verdict.map(|v| v.words);
    let count = |side: usize| i64::try_from(words?[side]).ok().map(CellValue::Integer);
    let mut cells: Vec<Option<CellValue>> = sides.map(count).into();
    for target in ScoreTarget::all() {
        let scores = verdict.and_then(|v| v.scores.as_ref()?.get(&target));
        let alone = |side: usize| {
            (target == ScoreTarget::Final && entry.models.len() == 1)
                .then(|| alone_score(outcome, side))
        };
        cells.extend(sides.map(|side| match scores {
            Some(pair) => Some(CellValue::Number(pair[side])),
            None => alone(side).flatten().map(CellValue::Number),
        }));
    }
    cells
}
