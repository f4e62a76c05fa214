//! Checkpoints: hub downloads, published layouts, file formats, panels, and a store that interns
//! equal tensors.

pub mod file_filter;
pub mod gguf;
pub mod hub;
pub mod panel;
pub mod published;
pub mod safetensors;
pub mod store;
pub mod torch;
