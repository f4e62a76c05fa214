//! The tasks of all raters with what was entered.

use crate::annotation::journal::{RatingState, TaskPlace, TaskState};
use crate::annotation::study::{AssignedTask, StudyPlan, Task};

/// A task of a rater with its state.
pub(super) struct RatedTask<'a> {
    /// Name of the rater.
    pub(super) rater: &'a str,
    /// How the rater sees the task.
    pub(super) assigned: AssignedTask,
    /// The task.
    pub(super) task: &'a Task,
    /// What the rater entered.
    pub(super) state: &'a TaskState,
}

/// Returns the tasks of all raters.
pub(super) fn rated_tasks<'a>(
    plan: &'a StudyPlan,
    ratings: &'a RatingState,
) -> impl Iterator<Item = RatedTask<'a>> {
    plan.config.raters.iter().enumerate().flat_map(move |(rater, config)| {
        let places = 0..ratings.of_rater(rater).len();
        places.filter_map(move |place| {
            let (assigned, task) = plan.assigned(rater, place)?;
            let state = ratings.get(TaskPlace { rater, place })?;
            Some(RatedTask { rater: &config.name, assigned, task, state })
        })
    })
}
