//! The decisions about unresolved pairs, for `acem3 train introspect --decisions`.

use super::rated_tasks::{RatedTask, rated_tasks};
use crate::annotation::journal::RatingState;
use crate::annotation::study::{Part, StudyPlan};

/// Writes the lines of `unresolved.jsonl` with the submitted decisions. A pair without one is absent.
pub(super) fn write(plan: &StudyPlan, ratings: &RatingState) -> String {
    let mut lines = vec![None; plan.unresolved.len()];
    for rated in rated_tasks(plan, ratings, Part::Responses).filter(RatedTask::is_submitted) {
        let task = rated.assigned.task;
        if let (Some(line), Some(pair)) = (lines.get_mut(task), plan.unresolved.get(task)) {
            *line = Some(pair.to_line(rated.state.answers.decision_value(rated.rater)));
        }
    }
    lines.into_iter().flatten().map(|line| line + "\n").collect()
}
