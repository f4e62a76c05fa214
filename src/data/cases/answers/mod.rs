//! Responses from answers files.

pub(crate) mod answer_index;
pub(crate) mod answer_line;
pub(crate) mod answer_matches;
mod answer_problems;
pub(crate) mod unusable_lines;
