//! Tensors in memory: how they are encoded, and a store that holds equal ones once.

pub mod encoding;
pub mod tensor_store;
pub mod weight_files;
