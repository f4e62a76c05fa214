//! Why an image does not become pixel values.

/// Why an image cannot be brought into the form the encoder expects.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The settings contradict themselves.
    #[error("image processor: {what}\nhint: check the preprocessor's configuration")]
    Settings {
        /// What is wrong, naming the field.
        what: String,
    },
    /// An image so oblong that its resized form would fill the memory.
    #[error(
        "an image of {width} x {height} pixels is too oblong to be resized\n\
         hint: crop it to the part that matters"
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
