//! Control flow of a training run: checks, stages, and the training loop.

pub(crate) mod adapt;
pub(crate) mod preflight;
pub(crate) mod stage_run;
pub(crate) mod training_loop;
pub(crate) mod training_run;
