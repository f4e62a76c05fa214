//! Table with one row per pair and judge (CSV and Parquet output). A list has a row for each pair of its
//! responses.

use std::cmp::Ordering;
use std::collections::HashMap;

use acem3_conclusion::compare_scores;
use acem3_experts::prompt::Form;

use crate::analysis::report::judge_report::JudgeReport;
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
            let verdicts = JudgeVerdicts::new(judge, report.target);
            for entry in &browser.entries {
                let Some(Some(outcome)) = entry.verdicts.get(judge_index) else {
                    continue;
                };
                for sides in row_sides(entry) {
                    let found = verdicts.find(entry, sides);
                    let subject = RowSubject { entry, sides, outcome, found };
                    let mut row = vec![Some(text_cell(&judge.judge)), Some(text_cell(&judge.name))];
                    row.extend(subject.input_cells());
                    row.extend(subject.score_cells());
                    rows.push(row);
                }
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

/// A verdict on two responses.
#[derive(Clone, Copy)]
struct LabelledVerdict<'a> {
    verdict: &'a PairVerdict,
    /// The order of its responses according to the labels.
    label: Option<Ordering>,
}

/// The verdicts of a judge by case and models.
struct JudgeVerdicts<'a>(HashMap<(&'a str, [&'a str; 2]), LabelledVerdict<'a>>);

impl<'a> JudgeVerdicts<'a> {
    fn new(judge: &'a JudgeReport, target: ScoreTarget) -> Self {
        let labels = judge.label_orders(target);
        let verdicts = judge.verdicts.pairs.iter().enumerate().map(|(index, verdict)| {
            let models = verdict.pair.each_ref().map(String::as_str);
            let key = (verdict.case.as_str(), sorted_models(models));
            (key, LabelledVerdict { verdict, label: labels.get(&index).copied() })
        });
        Self(verdicts.collect())
    }

    /// Returns the verdict on two responses of an entry.
    fn find(&self, entry: &BrowserEntry, sides: [usize; 2]) -> Option<LabelledVerdict<'a>> {
        // A record with another number of models that is not a list has no verdict on a pair.
        if entry.form != Form::List && entry.models.len() != 2 {
            return None;
        }
        let [a, b] = sides.map(|side| entry.models.get(side).map(String::as_str));
        self.0.get(&(entry.case.as_deref()?, sorted_models([a?, b?]))).copied()
    }
}

/// Returns the indices of the two responses of each row. A list has one row for each pair. Any other record has one
/// row, also that of a case with too many responses for a list.
fn row_sides(entry: &BrowserEntry) -> Vec<[usize; 2]> {
    let n = entry.models.len();
    if entry.form != Form::List || !(2..=Form::List.max_responses()).contains(&n) {
        return vec![[0, 1]];
    }
    (0..n).flat_map(|i| (i + 1..n).map(move |j| [i, j])).collect()
}

fn sorted_models(mut pair: [&str; 2]) -> [&str; 2] {
    pair.sort_unstable();
    pair
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

/// What a row is about: two responses of an entry, or one that was judged alone.
struct RowSubject<'a> {
    entry: &'a BrowserEntry,
    /// Indices of the responses in the entry.
    sides: [usize; 2],
    outcome: &'a OutcomeSummary,
    /// The verdict on the two responses, if they have one.
    found: Option<LabelledVerdict<'a>>,
}

impl RowSubject<'_> {
    /// Returns the cells from `case` to `answer_b`: the input and the outcome.
    fn input_cells(&self) -> Vec<Option<CellValue>> {
        let Self { entry, sides, outcome, .. } = *self;
        let model = |side: usize| entry.models.get(side).map(|name| text_cell(name));
        let (status, reason, message) = match outcome {
            OutcomeSummary::Judged { .. } => ("judged", None, None),
            OutcomeSummary::Unscored { reason, message } => {
                ("unscored", Some(text_cell(reason.name())), Some(text_cell(message)))
            }
        };
        let answer = |side: usize| Some(text_cell(entry.answers.as_ref()?.get(side)?));
        let optional = |value: &Option<String>| value.as_deref().map(text_cell);
        let [order, flip] = self.order_cells();
        vec![
            optional(&entry.case),
            i64::try_from(entry.line).ok().map(CellValue::Integer),
            model(sides[0]),
            model(sides[1]),
            Some(text_cell(status)),
            reason,
            message,
            order,
            flip,
            self.label().map(order_cell),
            optional(&entry.image),
            optional(&entry.question),
            optional(&entry.reference),
            answer(sides[0]),
            answer(sides[1]),
        ]
    }

    /// Returns the order of the responses and whether it flips. Pairs of a list have no value for the flip, because
    /// a list is not judged in two orders but in one for each of its responses.
    fn order_cells(&self) -> [Option<CellValue>; 2] {
        let OutcomeSummary::Judged { order, flip, scores, .. } = self.outcome else {
            return [None, None];
        };
        if self.entry.form != Form::List {
            return [order.map(order_cell), flip.map(CellValue::Boolean)];
        }
        let [a, b] = self.sides.map(|side| scores.get(side).copied());
        let order = a.zip(b).map(|(a, b)| PairOrder::from(compare_scores([a, b])));
        [order.map(order_cell), None]
    }

    /// Returns the order of the row's models according to the labels.
    fn label(&self) -> Option<PairOrder> {
        if self.entry.form != Form::List {
            return self.entry.label;
        }
        let label = self.found?.label?;
        Some(if self.is_swapped() { label.reverse() } else { label }.into())
    }

    /// Returns true if the first model of the row is the second model of the verdict.
    fn is_swapped(&self) -> bool {
        let first = self.entry.models.get(self.sides[0]);
        self.found.is_some_and(|found| found.verdict.pair.first() != first)
    }

    /// Returns the cells of word counts and scores, in the order of the row's models.
    fn score_cells(&self) -> Vec<Option<CellValue>> {
        let (entry, verdict) = (self.entry, self.found.map(|found| found.verdict));
        let sides = if self.is_swapped() { [1, 0] } else { [0, 1] };
        let words = verdict.map(|v| v.words);
        let count = |side: usize| i64::try_from(words?[side]).ok().map(CellValue::Integer);
        let mut cells: Vec<Option<CellValue>> = sides.map(count).into();
        for target in ScoreTarget::all() {
            let scores = verdict.and_then(|v| v.scores.as_ref()?.get(&target));
            let alone = |side: usize| {
                let is_alone = target == ScoreTarget::Final && entry.models.len() == 1;
                is_alone.then(|| self.alone_score(side)).flatten()
            };
            cells.extend(sides.map(|side| {
                scores.map(|pair| pair[side]).or_else(|| alone(side)).map(CellValue::Number)
            }));
        }
        cells
    }

    /// Returns the final score of a response that was judged alone.
    fn alone_score(&self, side: usize) -> Option<f64> {
        match self.outcome {
            OutcomeSummary::Judged { scores, .. } => scores.get(side).copied(),
            OutcomeSummary::Unscored { .. } => None,
        }
    }
}
