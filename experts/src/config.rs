//! The shape of a whole member: vision tower, projector and decoder.

use acem3_projector::ProjectorConfig;
use acem3_vision::{Selection, VisionConfig};
use serde::{Deserialize, Serialize};

use crate::decoder::DecoderConfig;

/// The sizes of everything from pixels to logits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// The vision tower.
    pub vision: VisionConfig,
    /// Which of its states and tokens are used.
    pub selection: Selection,
    /// The projector.
    pub projector: ProjectorConfig,
    /// The decoder.
    pub decoder: DecoderConfig,
}

impl ModelConfig {
    /// Tokens that an image takes in a prompt.
    pub fn image_tokens(&self) -> usize {
        self.vision.tokens(self.selection)
    }

    /// What is wrong with these sizes, if anything is.
    pub fn check(&self) -> Result<(), String> {
        self.decoder
            .check()
            .map_err(|problem| format!("decoder: {problem}"))?;
        self.vision
            .validate()
            .map_err(|problem| problem.to_string())?;
        let wanted = (self.vision.hidden_size, self.decoder.hidden_size);
        let got = (
            self.projector.vision_hidden_size,
            self.projector.hidden_size,
        );
        if got != wanted {
            return Err(format!(
                "projector: it maps {} to {}, expected {} to {}",
                got.0, got.1, wanted.0, wanted.1
            ));
        }
        Ok(())
    }
}
