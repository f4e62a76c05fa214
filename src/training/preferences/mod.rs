//! Training on preference pairs.

pub mod data;
pub(crate) mod dpo_task;
pub(crate) mod file_sequences;
pub(crate) mod preference_cache;
pub(crate) mod preference_sequence;
