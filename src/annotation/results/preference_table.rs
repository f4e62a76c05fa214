//! Preferences: `case,model_a,model_b,rater,preference`.

use anyhow::Result;

use super::csv_table::{CsvTable, rated_tasks};
use crate::annotation::journal::{Preference, RatingState, TaskStatus};
use crate::annotation::study::StudyPlan;

/// Writes the table. The models are in the order of the case.
pub(super) fn write(plan: &StudyPlan, ratings: &RatingState) -> Result<Vec<u8>> {
    let mut table = CsvTable::new(&["case", "model_a", "model_b", "rater", "preference"])?;
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
            table.push([&rated.task.case.id, *first, *second, rated.rater, preference])?;
        }
    }
    table.finish()
}
