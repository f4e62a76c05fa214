//! Construction of training data: answers of models, evaluations of a teacher, checks of both.

pub mod answers;
pub mod evaluations;
pub mod review;
