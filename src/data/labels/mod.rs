//! What people said of responses: label files, and the labels that records carry.
//!
//! A file is read row by row into [`LabelEntry`]s by the names of its columns, whatever their order; each
//! entry says who rated which response, or preferred which of two, on what.

mod column;
mod entry;
mod file;
mod record_labels;
mod target;
mod vote;

pub use crate::data::labels::record_labels::own;
pub use entry::{LabelEntry, LabelValue, ONE_RATER};
pub use file::{LabelFile, LabelOptions, read};
pub use target::ScoreTarget;
pub use vote::Vote;
