//! Frozen-activation cache: outputs of frozen layers, computed once and stored on disk.

pub(crate) mod activation_file;
pub(crate) mod frozen_cache;
