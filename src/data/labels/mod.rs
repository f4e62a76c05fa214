//! Labels: scores and preferences from label files and from records.
//!
//! [`read`] identifies the columns of a file by name, in any order, and converts each row to
//! [`LabelEntry`]s. It recognises an export of Label Studio by its content. An entry contains a rater, a score target, and a score of one response or a
//! preference between two.

mod column;
mod entry;
mod label_file;
pub(crate) mod label_studio;
mod reader;
mod record_labels;
mod target;
mod vote;

pub use crate::data::labels::record_labels::labels_from_record;
pub use entry::{LabelEntry, LabelValue, UNNAMED_RATER};
pub use label_file::{LabelFile, LabelOptions};
pub use reader::read;
pub use target::ScoreTarget;
pub use vote::Vote;
