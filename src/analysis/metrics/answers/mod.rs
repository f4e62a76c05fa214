//! Answers that metrics compare with references.

pub(crate) mod answer;
pub(crate) mod rationale;
pub(crate) mod record_answers;
