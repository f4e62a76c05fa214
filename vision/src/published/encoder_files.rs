//! Reads a published encoder from the JSON files of its repository.

use serde_json::Value;

use super::encoder::PublishedEncoder;
use super::error::PublishedError;
use super::{open_clip, transformers};

/// Parsed JSON files of a repository; `None` for a file that it does not contain.
#[derive(Clone, Copy, Debug, Default)]
pub struct EncoderFiles<'a> {
    /// `config.json`.
    pub config: Option<&'a Value>,
    /// `open_clip_config.json`.
    pub open_clip_config: Option<&'a Value>,
    /// `preprocessor_config.json`, or `processor_config.json` with the settings in
    /// `image_processor`.
    pub preprocessor_config: Option<&'a Value>,
}

impl PublishedEncoder {
    /// Reads the files.
    ///
    /// A `config.json` of a supported architecture takes precedence over an
    /// `open_clip_config.json`, because repositories with both files contain the weights in both
    /// layouts.
    pub fn from_files(files: &EncoderFiles<'_>) -> Result<Self, PublishedError> {
        let encoder = match (files.config, files.open_clip_config) {
            (Some(config), open_clip)
                if open_clip.is_none() || transformers::is_supported(config) =>
            {
                transformers::read_encoder(config, files.preprocessor_config)?
            }
            (_, Some(open_clip)) => open_clip::read_encoder(open_clip)?,
            (_, None) => {
                return Err(PublishedError::MissingFile { file: "config.json" });
            }
        };
        encoder.check()?;
        Ok(encoder)
    }
}
