//! A text to generate, and the settings of generation.

use std::sync::Arc;

use candle::Tensor;

use crate::prompt::{StagedPrompt, TokenStep};

/// An image as the decoder sees it.
#[derive(Clone, Debug)]
pub struct ImageTokens {
    /// Equal for equal images only (a hash of the image's bytes, say).
    pub key: String,
    /// `(p, c)`.
    pub tokens: Tensor,
}

/// One text to be written.
#[derive(Clone, Debug)]
pub struct Task {
    /// Who writes it: the place of the head in the engine.
    pub member: usize,
    /// What it reads.
    pub prompt: StagedPrompt,
    /// The image in the prompt.
    pub image: Option<Arc<ImageTokens>>,
    /// The form of the text.
    pub format: Arc<[TokenStep]>,
}

/// How texts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Most tokens of one free text.
    pub analysis_tokens: usize,
    /// Leave every free text empty: faster, and only as good as the panel is without reasons.
    pub scores_only: bool,
}
