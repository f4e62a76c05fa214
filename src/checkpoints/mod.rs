//! Checkpoints: hub downloads, published layouts, file formats, and weights stored once by content.

pub mod gguf;
pub mod hub;
pub mod panel;
pub mod published;
pub mod safetensors;
pub mod store;
pub mod torch;
