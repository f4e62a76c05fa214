//! Files that a training run reads and writes.

pub(crate) mod data_digests;
pub(crate) mod export;
mod finished_weights;
pub(crate) mod member_adapters;
pub(crate) mod member_state;
pub(crate) mod run_folder;
pub(crate) mod stage_files;
pub(crate) mod training_inputs;
