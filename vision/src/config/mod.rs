//! Configuration of a vision encoder.

mod error;
mod selection;
mod vision_config;
mod vit_variant;

pub use error::ConfigError;
pub use selection::{SelectFeature, Selection};
pub use vision_config::VisionConfig;
pub use vit_variant::VitVariant;

#[cfg(test)]
pub(crate) use vision_config::tests::{tiny, tiny_pixels};
