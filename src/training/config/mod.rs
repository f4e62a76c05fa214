//! The configuration of a training.

pub(crate) mod config;
pub(crate) mod precision;
pub(crate) mod preference_config;
pub(crate) mod source;
pub(crate) mod split;
pub(crate) mod stage_config;
