//! Details: what happened to each task of each rater.

use anyhow::Result;

use crate::annotation::journal::RatingState;
use crate::annotation::results::rated_tasks::rated_tasks;
use crate::annotation::study::StudyPlan;
use crate::support::tables::Table;

/// Columns of the table.
const COLUMNS: [&str; 9] = [
    "case",
    "model_a",
    "model_b",
    "rater",
    "status",
    "shown_first",
    "seconds",
    "comment",
    "skip_reason",
];

/// Writes the table, with a row for each task of each rater.
pub(in crate::annotation::results) fn write(
    plan: &StudyPlan,
    ratings: &RatingState,
) -> Result<String> {
    let mut table = Table::new(COLUMNS);
    for rated in rated_tasks(plan, ratings) {
        let models = rated.task.models();
        let model = |i: usize| models.get(i).copied().unwrap_or_default();
        let shown_first = usize::from(rated.assigned.is_swapped);
        let (answers, seconds) = (&rated.state.answers, format!("{:.1}", rated.state.seconds));
        table.push_row([
            rated.task.case.id.as_str(),
            model(0),
            model(1),
            rated.rater,
            rated.state.status.name(),
            model(shown_first),
            &seconds,
            &answers.comment,
            &answers.reason,
        ]);
    }
    table.to_csv()
}
