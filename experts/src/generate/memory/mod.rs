//! Memory for keys and values: what tasks take, and the limit.

mod limit;
mod task_memory;
mod token_bytes;
mod used_memory;

pub(super) use limit::MemoryLimit;
pub(super) use task_memory::TaskMemory;
pub(super) use token_bytes::TokenBytes;
pub(super) use used_memory::UsedMemory;
