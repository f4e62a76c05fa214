//! Runs the stages of a training: steps, validation, checkpoints, metrics and the finished panel.

pub(crate) mod context;
pub(crate) mod files;
pub(crate) mod frozen;
pub(crate) mod metrics;
pub(crate) mod parallel;
pub(crate) mod run;
pub(crate) mod tasks;
#[cfg(test)]
mod tests;
