//! Memory for keys and values: what tasks take, and the limit.

mod cache_memory;
mod task_memory;
mod token_bytes;
mod used_memory;

pub(super) use cache_memory::CacheMemory;
pub(super) use task_memory::TaskMemory;
pub(super) use token_bytes::TokenBytes;
pub(super) use used_memory::UsedMemory;
