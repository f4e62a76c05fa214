//! Configuration of a stage: data, trainable weights, and checks of consistency.

pub(crate) mod curriculum;
pub(crate) mod evaluation_config;
pub(crate) mod frozen_part;
pub(crate) mod mean_checks;
pub(crate) mod negative;
pub(crate) mod preference_config;
pub(crate) mod reward_token;
pub(crate) mod stage_checks;
pub(crate) mod stage_config;
pub(crate) mod stage_kind;
mod unused_settings;
mod zero_value;
