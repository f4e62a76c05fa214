//! The commands of `acem3 data` that construct training data.

pub(super) mod evaluations;
pub(super) mod review;
