//! Preprocessed image of a training example.

use std::sync::Arc;

use acem3_vision::TileGrid;

/// An image as encoder inputs.
#[derive(Clone, Debug)]
pub struct TrainingImage {
    /// Pixel values of the encoder inputs.
    ///
    /// # Shapes
    /// `(n, 3, s, s)`.
    pub pixels: Arc<[f32]>,
    /// Arrangement of the encoder inputs.
    pub grid: TileGrid,
    /// Number of image tokens in a prompt.
    pub tokens: usize,
}

/// Position of the image tokens in a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageSpan {
    /// Index of the first image token.
    pub start: usize,
    /// Number of image tokens.
    pub tokens: usize,
    /// Arrangement of the encoder inputs.
    pub grid: TileGrid,
}
