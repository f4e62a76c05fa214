//! Generation tasks and settings.

use std::sync::Arc;

use candle::Tensor;

use super::opening::Opening;
use crate::Error;
use crate::prompt::{StagedPrompt, TokenStep};

/// Image tokens with a cache key.
#[derive(Clone, Debug)]
pub struct ImageTokens {
    /// Identifies the image, for example a hash of its bytes. Different images have different keys.
    pub key: String,
    /// Image tokens, `(p, c)`.
    pub tokens: Tensor,
}

/// A text to generate.
#[derive(Clone, Debug)]
pub struct GenerationTask {
    /// Index of the member that writes the text, and of its head in the engine.
    pub member: usize,
    /// Prompt of the text.
    pub prompt: StagedPrompt,
    /// Image in the prompt.
    pub image: Option<Arc<ImageTokens>>,
    /// Format of the text.
    pub format: Arc<[TokenStep]>,
    /// Number of samples of the text; 1 for the most probable text alone.
    pub samples: usize,
    /// The opening of the first free text, if it is given or its probability is needed. Only with one sample.
    pub opening: Option<Opening>,
}

/// Returns the number of tokens of the image of a task; 0 if it has none.
pub(super) fn image_tokens(task: &GenerationTask) -> Result<usize, Error> {
    task.image.as_ref().map_or(Ok(0), |image| Ok(image.tokens.dim(0)?))
}

/// Generation settings of all texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenerationSettings {
    /// Token budget of one free text.
    pub analysis_tokens: usize,
    /// Leave all free texts empty: faster, but the scores are not based on an analysis.
    pub scores_only: bool,
}
