//! Tensors in memory: how they are encoded, and a store that holds equal ones once.

pub mod encoding;
pub mod store;
pub mod weights;
