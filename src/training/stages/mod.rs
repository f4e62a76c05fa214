//! Stages: steps, validation, checkpoints, metrics.

pub(crate) mod activation_file;
pub(crate) mod epoch_sampler;
pub(crate) mod evaluation_set;
pub(crate) mod export;
pub(crate) mod frozen_cache;
pub(crate) mod init;
pub(crate) mod member_state;
pub(crate) mod preflight;
pub(crate) mod progress;
pub(crate) mod run_folder;
pub(crate) mod stage;
pub(crate) mod step_metrics;
pub(crate) mod task;
pub(crate) mod tensorboard;
#[cfg(test)]
mod tests;
