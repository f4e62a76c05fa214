//! The tasks of all raters with what was entered.

use crate::annotation::journal::{RatingState, TaskPlace, TaskState, TaskStatus};
use crate::annotation::study::{AssignedTask, Part, StudyPlan, Task};

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

impl<'a> RatedTask<'a> {
    /// Returns true if the answers are submitted.
    pub(super) fn is_submitted(&self) -> bool {
        self.state.status == TaskStatus::Submitted
    }

    /// Returns the models of the responses; the second is empty if there is one response.
    pub(super) fn model_columns(&self) -> [&'a str; 2] {
        let models = self.task.models();
        [0, 1].map(|i| models.get(i).copied().unwrap_or_default())
    }
}

/// Returns the tasks of all raters in a part of the study.
pub(super) fn rated_tasks<'a>(
    plan: &'a StudyPlan,
    ratings: &'a RatingState,
    part: Part,
) -> impl Iterator<Item = RatedTask<'a>> {
    plan.config.raters.iter().enumerate().flat_map(move |(rater, config)| {
        let places = 0..ratings.of_rater(part, rater).len();
        places.filter_map(move |place| {
            let (assigned, task) = plan.assigned(rater, place)?;
            let state = ratings.get(TaskPlace { part, rater, place })?;
            Some(RatedTask { rater: &config.name, assigned, task, state })
        })
    })
}
