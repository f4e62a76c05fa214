//! Configuration of a training: plain values that are read from and written to `train.toml`.

pub(crate) mod activation_dtype;
pub(crate) mod evaluation_config;
pub(crate) mod frozen_part;
pub(crate) mod initial_model;
pub(crate) mod load;
pub(crate) mod negative;
pub(crate) mod precision;
pub(crate) mod preference_config;
pub(crate) mod reward_token;
pub(crate) mod stage_checks;
pub(crate) mod stage_config;
pub(crate) mod stage_kind;
pub(crate) mod train_config;
pub(crate) mod train_paths;
pub(crate) mod validation_indices;
