//! Ratings in the JSON of Label Studio.
//!
//! The [`control_names`] say which control of a labeling configuration has which rating. The results of a
//! study are written with these names, and [`tasks_file`] reads them from an export of Label Studio.

mod annotation_results;
mod control_names;
mod control_value;
mod rating_collector;
mod studio_task;
pub(super) mod tasks_file;

pub(crate) use control_names::{
    COMMENT_CONTROL, IMAGE_FIELD, PREFERENCE_CHOICES, PREFERENCE_CONTROL, QUESTION_FIELD,
    RATER_CONTROL, RESPONSE_FIELDS, score_control,
};
