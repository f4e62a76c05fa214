//! Llama-family decoder, split into a trunk that the members share and a head for each member.
//!
//! Tensor names are those of transformers' `LlamaForCausalLM` (`modeling_llama.py`). Weights are
//! immutable; caches are arguments.

mod attention;
mod batch_layout;
mod cache;
mod config;
mod gemma_settings;
mod layer;
mod norm;
mod rope_scaling;
mod stack;

pub use batch_layout::BatchLayout;
pub(crate) use cache::block_capacity;
pub use cache::{KvCache, LayerCache};
pub use config::DecoderConfig;
pub use gemma_settings::GemmaSettings;
pub use layer::DecoderLayer;
pub use rope_scaling::RopeScaling;
pub use stack::{CachedSequence, Head, Trunk};
