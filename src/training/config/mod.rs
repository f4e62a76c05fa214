//! The configuration of a training.

pub(crate) mod precision;
pub(crate) mod preference_config;
pub(crate) mod preference_source;
pub(crate) mod stage_config;
pub(crate) mod train_config;
pub(crate) mod validation_split;
