//! Preferences: `case,model_a,model_b,rater,preference`.

use anyhow::Result;

use crate::annotation::journal::{Preference, RatingState, TaskStatus};
use crate::annotation::results::rated_tasks::rated_tasks;
use crate::annotation::study::StudyPlan;
use crate::support::tables::Table;

/// Writes the table. The models are in the order of the case.
pub(in crate::annotation::results) fn write(
    plan: &StudyPlan,
    ratings: &RatingState,
) -> Result<String> {
    let mut table = Table::new(["case", "model_a", "model_b", "rater", "preference"]);
    for rated in rated_tasks(plan, ratings).filter(|r| r.state.status == TaskStatus::Submitted) {
        let models = rated.task.models();
        if let ([first, second], Some(preference)) =
            (models.as_slice(), rated.state.answers.preference)
        {
            let preference = match preference {
                Preference::First => "a",
                Preference::Second => "b",
                Preference::Equal => "tie",
            };
            table.push_row([&rated.task.case.id, *first, *second, rated.rater, preference]);
        }
    }
    table.to_csv()
}
