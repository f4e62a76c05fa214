//! One Llama-family decoder, cut in two: a trunk that members share and a head of their own.
//!
//! Tensor names are those of transformers' `LlamaForCausalLM` (`modeling_llama.py`). Weights are
//! immutable; caches are arguments.

mod attention;
mod batch_layout;
mod cache;
mod config;
mod layer;
mod rope_scaling;
mod stack;

pub use batch_layout::Sight;
pub use cache::{KvCache, LayerCache};
pub use config::DecoderConfig;
pub use layer::Layer;
pub use rope_scaling::RopeScaling;
pub use stack::{Head, Row, Trunk};
