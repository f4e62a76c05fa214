//! Configuration of a member: vision tower, projector and decoder.

use acem3_projector::ProjectorConfig;
use acem3_vision::{Selection, VisionConfig};
use serde::{Deserialize, Serialize};

use crate::decoder::DecoderConfig;

/// Sizes of all layers of a member, from pixels to logits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Sizes of the vision tower.
    pub vision: VisionConfig,
    /// Layer and tokens of the vision tower that the projector receives.
    pub selection: Selection,
    /// Sizes of the projector.
    pub projector: ProjectorConfig,
    /// Sizes of the decoder.
    pub decoder: DecoderConfig,
}

impl ModelConfig {
    /// Returns the number of tokens of one image in a prompt.
    pub fn image_tokens(&self) -> usize {
        self.projector.kind.token_count(self.vision.token_count(self.selection))
    }

    /// Returns an error if a size is invalid or if the parts do not fit each other.
    pub fn validate(&self) -> Result<(), String> {
        self.decoder.validate().map_err(|problem| format!("decoder: {problem}"))?;
        self.vision.validate().map_err(|problem| problem.to_string())?;
        let expected = (self.vision.hidden_size, self.decoder.hidden_size);
        let found = (self.projector.vision_hidden_size, self.projector.hidden_size);
        if found != expected {
            return Err(format!(
                "projector: expected hidden sizes {} (input) and {} (output), found {} and {}",
                expected.0, expected.1, found.0, found.1
            ));
        }
        Ok(())
    }
}
