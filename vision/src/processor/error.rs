//! Errors of image preprocessing.

/// Error of image preprocessing.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// Contradictory settings.
    #[error("image processor: {what}\nhint: check the preprocessor's configuration")]
    Settings {
        /// What is wrong, naming the field.
        what: String,
    },
    /// An image so elongated that resizing it would take too much memory.
    #[error(
        "an image of {width} x {height} pixels is too elongated to resize\n\
         hint: crop it to the relevant part"
    )]
    Oblong {
        /// Width in pixels.
        width: usize,
        /// Height in pixels.
        height: usize,
    },
    /// candle could not make the tensor.
    #[error("pixel values: {0}")]
    Tensor(#[from] candle::Error),
}

impl ProcessError {
    /// An error about contradictory settings.
    pub(super) fn settings(what: impl Into<String>) -> Self {
        Self::Settings { what: what.into() }
    }
}
