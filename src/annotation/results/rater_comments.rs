//! What raters remarked on an item on which they disagree.

use super::rated_items::RatedItem;
use super::rated_tasks::{RatedTask, rated_tasks};
use crate::annotation::journal::RatingState;
use crate::annotation::study::{Part, StudyPlan};

/// A comment of a rater, without the name of the rater.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RaterComment {
    /// The comment.
    pub(crate) text: String,
    /// Which model's response the rater saw as answer A and which as answer B; one model if there was one
    /// response.
    pub(crate) shown: Vec<String>,
}

/// Returns the comments on the tasks that an item is part of, in the order of their texts, which says
/// nothing of the raters.
pub(crate) fn rater_comments(
    plan: &StudyPlan,
    ratings: &RatingState,
    item: &RatedItem,
) -> Vec<RaterComment> {
    let is_about = |rated: &RatedTask| {
        let models = rated.task.models();
        rated.task.case.id == item.case
            && item.models.iter().all(|model| models.contains(&model.as_str()))
    };
    let rated = rated_tasks(plan, ratings, Part::Responses);
    let rated = rated.filter(|rated| rated.is_submitted() && is_about(rated));
    let comments = rated.filter(|rated| !rated.state.answers.comment.is_empty()).map(|rated| {
        let mut shown: Vec<String> = rated.task.models().into_iter().map(str::to_owned).collect();
        if rated.assigned.is_swapped {
            shown.reverse();
        }
        RaterComment { text: rated.state.answers.comment.clone(), shown }
    });
    let mut comments: Vec<RaterComment> = comments.collect();
    comments.sort();
    comments
}
