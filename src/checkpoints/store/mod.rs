//! Tensors in memory: their encoding, and a store that interns equal tensors.

pub mod encoding;
pub mod tensor_store;
pub mod weight_files;
