//! Details: what happened to each task of each rater.

use anyhow::Result;

use crate::annotation::journal::RatingState;
use crate::annotation::results::rated_tasks::{RatedTask, rated_tasks};
use crate::annotation::study::{Part, StudyPlan};
use crate::support::tables::Table;

/// Columns of the table.
const COLUMNS: [&str; 10] = [
    "case",
    "model_a",
    "model_b",
    "rater",
    "status",
    "shown_first",
    "seconds",
    "comment",
    "skip_reason",
    "part",
];

/// Writes the table, with a row for each task of each rater in each part of the study.
pub(in crate::annotation::results) fn write(
    plan: &StudyPlan,
    ratings: &RatingState,
) -> Result<String> {
    let mut table = Table::new(COLUMNS);
    if plan.config.rates_responses() {
        for rated in rated_tasks(plan, ratings, Part::Responses) {
            let models = rated.model_columns();
            let shown_first = models[usize::from(rated.assigned.is_swapped)];
            push(&mut table, &rated, shown_first, Part::Responses);
        }
    }
    let judges: Vec<&str> = plan.judges.iter().map(|run| run.judge.as_str()).collect();
    for rated in rated_tasks(plan, ratings, Part::Evaluations) {
        if plan.evaluations(rated.assigned.task).is_some() {
            let shown_first = usize::from(rated.assigned.is_judge_swapped);
            let shown_first = judges.get(shown_first).copied().unwrap_or_default();
            push(&mut table, &rated, shown_first, Part::Evaluations);
        }
    }
    table.to_csv()
}

fn push(table: &mut Table, rated: &RatedTask, shown_first: &str, part: Part) {
    let [first, second] = rated.model_columns();
    let (answers, seconds) = (&rated.state.answers, format!("{:.1}", rated.state.seconds));
    table.push_row([
        rated.task.case.id.as_str(),
        first,
        second,
        rated.rater,
        rated.state.status.name(),
        shown_first,
        &seconds,
        &answers.comment,
        &answers.reason,
        part.name(),
    ]);
}
