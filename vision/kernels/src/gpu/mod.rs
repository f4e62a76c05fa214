//! Kernels for CUDA GPUs: attention of new tokens over cached keys and values, and parts of layers.
//!
//! All layers of a decoder share the blocks of a cache. A forward pass describes its sequences once,
//! in an [`AttentionPass`]. Each layer launches up to five kernels for all sequences together. The
//! kernels read the blocks in place. Sequences that begin with the same tokens share blocks. The
//! result for a token depends on its own sequence alone, as on the CPU.
//!
//! Other kernels ([`layers`]) each replace several of candle's.
//!
//! All need the feature `cuda` and a GPU of compute capability 8.0 or later. All work of a GPU must be
//! on one stream, so open it with [`Device::new_cuda_with_stream`](candle::Device::new_cuda_with_stream):
//! [`Device::new_cuda`](candle::Device::new_cuda) has a stream for each thread, and the work of threads
//! is then not in order.

mod device_cache;
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "the kernels read the records"))]
mod pass;
mod tasks;
#[cfg(all(test, feature = "cuda"))]
mod tests;

#[cfg(feature = "cuda")]
mod attention;
#[cfg(feature = "cuda")]
mod launch;
#[cfg(not(feature = "cuda"))]
#[path = "no_launch.rs"]
mod launch;
#[cfg(feature = "cuda")]
pub(crate) mod layers;
#[cfg(not(feature = "cuda"))]
mod no_cuda;

#[cfg(not(feature = "cuda"))]
pub(crate) use self::no_cuda::layers;

pub use self::device_cache::{CacheShape, DeviceCache};
pub use self::pass::{AttentionPass, NewHeads, PassSequence};
