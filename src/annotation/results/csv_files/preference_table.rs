//! Preferences: `case,model_a,model_b,rater,preference`.

use anyhow::Result;

use crate::annotation::journal::{Preference, RatingState};
use crate::annotation::results::rated_tasks::{RatedTask, rated_tasks};
use crate::annotation::study::{Part, StudyPlan};
use crate::data::labels::Vote;
use crate::support::tables::Table;

/// Writes the table. The models are in the order of the case.
pub(in crate::annotation::results) fn write(
    plan: &StudyPlan,
    ratings: &RatingState,
) -> Result<String> {
    let mut table = Table::new(["case", "model_a", "model_b", "rater", "preference"]);
    for rated in rated_tasks(plan, ratings, Part::Responses).filter(RatedTask::is_submitted) {
        let models = rated.task.models();
        let order = rated.state.answers.preference.map(Preference::order);
        if let ([first, second], Some(order)) = (models.as_slice(), order) {
            let preference = Vote::text_of(order, [*first, *second]);
            table.push_row([&rated.task.case.id, *first, *second, rated.rater, preference]);
        }
    }
    table.to_csv()
}
