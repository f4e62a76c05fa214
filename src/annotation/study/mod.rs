//! A study: its raters, its tasks, and which rater sees which task.

mod assignment;
mod judge_evaluations;
mod part;
mod rating_scheme;
mod study_config;
mod study_plan;
mod task;

pub use assignment::{AssignedTask, Assignment, assign};
pub use judge_evaluations::JudgeEvaluations;
pub use part::Part;
pub use rating_scheme::{EVALUATION_CRITERIA, RatedAspect, RatingScheme};
pub(crate) use study_config::ADJUDICATOR;
pub use study_config::{RaterConfig, Stage, StudyConfig};
pub use study_plan::{FINAL_SCORE, StudyPlan};
pub use task::{Task, tasks_of_cases, tasks_of_unresolved};
