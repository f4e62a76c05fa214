//! Table with one row per response and judge (CSV and Parquet output).

use super::report::GradedReport;
use crate::analysis::report::page::browser::{BrowserEntry, CaseBrowser};
use crate::analysis::report::verdicts::record_summary::OutcomeSummary;
use crate::analysis::report::verdicts::verdict_table::{CellValue, ColumnType, VerdictTable};

/// The columns.
const COLUMNS: [(&str, ColumnType); 18] = [
    ("judge", ColumnType::Text),
    ("judge_name", ColumnType::Text),
    ("case", ColumnType::Text),
    ("line", ColumnType::Integer),
    ("model", ColumnType::Text),
    ("status", ColumnType::Text),
    ("reason", ColumnType::Text),
    ("message", ColumnType::Text),
    ("verdict", ColumnType::Text),
    ("probability", ColumnType::Number),
    ("label", ColumnType::Integer),
    ("exact_match", ColumnType::Boolean),
    ("token_recall", ColumnType::Number),
    ("closed", ColumnType::Boolean),
    ("image", ColumnType::Text),
    ("question", ColumnType::Text),
    ("reference", ColumnType::Text),
    ("answer", ColumnType::Text),
];

/// Builds the rows of all judges.
pub fn graded_table(report: &GradedReport, browser: &CaseBrowser) -> VerdictTable {
    let mut rows = Vec::new();
    for (number, judge) in report.judges.iter().enumerate() {
        for entry in &browser.entries {
            let Some(Some(outcome)) = entry.verdicts.get(number) else {
                continue;
            };
            let mut row = vec![text(Some(&judge.judge)), text(Some(&judge.name))];
            row.extend(response_cells(entry, outcome));
            rows.push(row);
        }
    }
    let columns = COLUMNS.map(|(name, column_type)| (name.to_owned(), column_type));
    VerdictTable { columns: columns.into(), rows }
}

fn text(value: Option<&str>) -> Option<CellValue> {
    value.map(|value| CellValue::Text(value.to_owned()))
}

/// Returns the cells from `case` to `answer`.
fn response_cells(entry: &BrowserEntry, outcome: &OutcomeSummary) -> Vec<Option<CellValue>> {
    let (status, reason, probability) = match outcome {
        OutcomeSummary::Judged { expected, .. } => ("judged", None, expected.first().copied()),
        OutcomeSummary::Unscored { reason, message } => {
            ("unscored", Some((reason.name(), message.as_str())), None)
        }
    };
    let verdict = probability.map(|p| if p > 0.5 { "correct" } else { "wrong" });
    let label = entry.labels.as_ref().and_then(|labels| labels.first());
    let metrics = entry.metrics;
    let answer = entry.answers.as_ref().and_then(|answers| answers.first());
    vec![
        text(entry.case.as_deref()),
        i64::try_from(entry.line).ok().map(CellValue::Integer),
        text(entry.models.first().map(String::as_str)),
        text(Some(status)),
        text(reason.map(|(name, _)| name)),
        text(reason.map(|(_, message)| message)),
        text(verdict),
        probability.map(CellValue::Number),
        label.map(|label| CellValue::Integer(i64::from(*label > 0.5))),
        metrics.map(|metrics| CellValue::Boolean(metrics.exact)),
        metrics.map(|metrics| CellValue::Number(metrics.recall)),
        metrics.and_then(|metrics| metrics.closed).map(CellValue::Boolean),
        text(entry.image.as_deref()),
        text(entry.question.as_deref()),
        text(entry.reference.as_deref()),
        text(answer.map(String::as_str)),
    ]
}
