//! Labels: scores and preferences from label files and from records.
//!
//! [`read`] identifies the columns of a file by name, in any order, and converts each row to
//! [`LabelEntry`]s. An entry contains a rater, a score target, and a score of one response or a
//! preference between two.

mod column;
mod entry;
mod file;
mod record_labels;
mod target;
mod vote;

pub use crate::data::labels::record_labels::labels_from_record;
pub use entry::{LabelEntry, LabelValue, UNNAMED_RATER};
pub use file::{LabelFile, LabelOptions, read};
pub use target::ScoreTarget;
pub use vote::Vote;
