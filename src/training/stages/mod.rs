//! Runs the stages of a training: steps, validation, checkpoints, metrics and the finished panel.

pub(crate) mod adapt;
pub(crate) mod context;
pub(crate) mod epoch_sampler;
pub(crate) mod export;
pub(crate) mod frozen;
pub(crate) mod member_state;
pub(crate) mod metrics;
pub(crate) mod parallel;
pub(crate) mod preflight;
pub(crate) mod progress;
pub(crate) mod run_folder;
pub(crate) mod stage_files;
pub(crate) mod stage_run;
pub(crate) mod tasks;
#[cfg(test)]
mod tests;
pub(crate) mod training_inputs;
pub(crate) mod training_loop;
pub(crate) mod training_run;
