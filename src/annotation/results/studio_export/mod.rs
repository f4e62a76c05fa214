//! Results for Label Studio: tasks with annotations, and the labeling configuration that shows them.

mod exported_annotation;
mod exported_task;
pub(super) mod labeling_config;
pub(super) mod tasks_file;
