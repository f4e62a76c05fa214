//! Commands that train.

pub(super) mod encoders;
mod introspect;
pub(super) mod train;
