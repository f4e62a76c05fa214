//! Configuration of a training: plain values that are read from and written to `train.toml`.

pub(crate) mod activation_dtype;
pub(crate) mod data_shares;
pub(crate) mod initial_model;
pub(crate) mod judging_config;
pub(crate) mod load;
pub(crate) mod precision;
pub(crate) mod reward_token_checks;
pub(crate) mod reward_token_source;
pub(crate) mod reward_tokens;
pub(crate) mod stage;
pub(crate) mod start_config;
pub(crate) mod train_config;
pub(crate) mod train_paths;
pub(crate) mod validation_indices;
