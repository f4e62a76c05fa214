//! `label_studio.json`: the tasks of a study with the annotations of all raters.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::exported_annotation::ExportedAnnotation;
use super::exported_task::ExportedTask;
use crate::annotation::journal::{RatingState, TaskStatus};
use crate::annotation::results::rated_tasks::rated_tasks;
use crate::annotation::study::{Part, StudyPlan};

/// Writes all tasks of the study. A task has an annotation for each rater who submitted or skipped it.
/// `image_folder`: folder of the cases.
///
/// # Errors
/// If the tasks cannot be written as JSON.
pub(in crate::annotation::results) fn write(
    plan: &StudyPlan,
    ratings: &RatingState,
    image_folder: &Path,
) -> Result<String> {
    let has_images = plan.tasks.iter().any(|task| task.case.image.is_some());
    let tasks = plan.tasks.iter().enumerate().map(|(i, task)| {
        let mut exported = ExportedTask::new(i + 1, task, plan.config.seed);
        if has_images {
            exported.set_image(task.case.image.as_ref(), image_folder);
        }
        exported
    });
    let mut tasks: Vec<ExportedTask> = tasks.collect();
    let mut id = 0;
    for rated in rated_tasks(plan, ratings, Part::Responses) {
        let is_done = matches!(rated.state.status, TaskStatus::Submitted | TaskStatus::Skipped);
        if let Some(task) = tasks.get_mut(rated.assigned.task).filter(|_| is_done) {
            id += 1;
            let annotation =
                ExportedAnnotation::new(id, rated.rater, rated.state, task.is_swapped());
            task.annotations.push(annotation);
        }
    }
    let text = serde_json::to_string_pretty(&tasks);
    Ok(text.context("cannot write the tasks of Label Studio")? + "\n")
}
