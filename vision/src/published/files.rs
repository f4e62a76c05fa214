//! Reads a published encoder from the JSON files of its repository.

use serde_json::Value;

use super::encoder::Published;
use super::error::PublishedError;
use super::{hub, open_clip};

/// The JSON files of a repository, those that it has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files<'a> {
    /// `config.json`.
    pub config: Option<&'a Value>,
    /// `open_clip_config.json`.
    pub open_clip_config: Option<&'a Value>,
    /// `preprocessor_config.json`, or `processor_config.json`, in whose `image_processor` it then lies.
    pub preprocessor_config: Option<&'a Value>,
}

impl Published {
    /// Reads the files. A `config.json` of an architecture that is known goes before an
    /// `open_clip_config.json` (repositories with both hold the weights in both forms).
    pub fn open(files: &Files<'_>) -> Result<Self, PublishedError> {
        let published = match (files.config, files.open_clip_config) {
            (Some(config), open_clip) if open_clip.is_none() || hub::is_known(config) => {
                hub::open(config, files.preprocessor_config)?
            }
            (_, Some(open_clip)) => open_clip::open(open_clip)?,
            (_, None) => {
                return Err(PublishedError::Missing {
                    file: "config.json",
                });
            }
        };
        published.check()?;
        Ok(published)
    }
}
