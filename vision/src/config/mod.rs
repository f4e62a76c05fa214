//! Configuration of a vision encoder.

mod error;
mod form;
mod selection;
mod vision_config;

pub use error::ConfigError;
pub use form::Form;
pub use selection::{SelectFeature, Selection};
pub use vision_config::VisionConfig;

#[cfg(test)]
pub(crate) use vision_config::tests::tiny;
