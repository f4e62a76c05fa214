//! Training on preference pairs.

pub(crate) mod contrast;
pub mod data;
pub(crate) mod given_pairs;
pub(crate) mod preferring;
pub(crate) mod stored;
