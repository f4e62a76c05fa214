//! Commands that train.

pub(super) mod encoders;
mod evaluate;
mod introspect;
mod result_files;
pub(super) mod train;
