//! Stages: steps, validation, checkpoints, metrics.

pub(crate) mod beginning;
pub(crate) mod deck;
pub(crate) mod evaluations;
pub(crate) mod export;
pub(crate) mod folder;
pub(crate) mod kept;
pub(crate) mod live;
pub(crate) mod metrics;
pub(crate) mod practice;
pub(crate) mod preflight;
pub(crate) mod rows;
pub(crate) mod stage;
pub(crate) mod tensorboard;
#[cfg(test)]
mod tests;
pub(crate) mod trained;
