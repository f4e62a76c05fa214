//! Errors of image preprocessing.

/// Error of image preprocessing.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// Invalid or contradictory settings.
    #[error("image processor: {problem}\nhint: check the preprocessor's configuration")]
    InvalidSettings {
        /// Description of the problem, with the name of the field.
        problem: String,
    },
    /// The image is so elongated that resizing it would take too much memory.
    #[error(
        "an image of {width} x {height} pixels is too elongated to resize\n\
         hint: crop it to the relevant part"
    )]
    TooElongated {
        /// Width in pixels.
        width: usize,
        /// Height in pixels.
        height: usize,
    },
    /// candle could not create the tensor.
    #[error("pixel values: {0}")]
    Tensor(#[from] candle::Error),
}

impl ProcessError {
    /// Creates an error about invalid settings.
    pub(super) fn invalid_settings(problem: impl Into<String>) -> Self {
        Self::InvalidSettings { problem: problem.into() }
    }
}
