//! Errors of a vision configuration.

/// Invalid configuration of a vision encoder, or selection of a missing hidden state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A size is zero.
    #[error(
        "vision config: `{field}` is 0, expected at least 1\n\
         hint: check whether the file is damaged"
    )]
    ZeroSize {
        /// Name of the field.
        field: &'static str,
    },
    /// A size is above the supported maximum.
    #[error(
        "vision config: `{field}` is {size}, expected at most {max}\n\
         hint: check whether the file is damaged"
    )]
    SizeTooLarge {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        size: usize,
        /// Supported maximum.
        max: usize,
    },
    /// An epsilon is out of range.
    #[error(
        "vision config: `{field}` is {value}, expected a number above 0 and at most 1\n\
         hint: check whether the file is damaged"
    )]
    InvalidEpsilon {
        /// Name of the field.
        field: &'static str,
        /// Value of the field, as text.
        value: String,
    },
    /// The number of heads does not divide the hidden size.
    #[error(
        "vision config: `hidden_size` is {hidden}, expected a multiple of `num_attention_heads`, \
         {heads}\n\
         hint: check that both come from the same checkpoint"
    )]
    IndivisibleHeads {
        /// `hidden_size`.
        hidden: usize,
        /// `num_attention_heads`.
        heads: usize,
    },
    /// A patch is larger than the image.
    #[error(
        "vision config: `patch_size` is {patch}, expected at most `image_size`, {image}\n\
         hint: check that both come from the same checkpoint"
    )]
    PatchTooLarge {
        /// `patch_size`.
        patch: usize,
        /// `image_size`.
        image: usize,
    },
    /// The selected layer does not exist.
    #[error(
        "vision selection: `select_layer` is {select_layer}, expected {min} to {layers} for an \
         encoder with {layers} layers\n\
         hint: pass 0 for the embeddings, or -1 for the output of the last layer",
        min = -to_signed(*layers) - 1
    )]
    MissingLayer {
        /// `select_layer`.
        select_layer: i64,
        /// `num_hidden_layers`.
        layers: usize,
    },
}

/// Converts a number of layers to a signed integer.
pub(super) fn to_signed(layers: usize) -> i64 {
    i64::try_from(layers).unwrap_or(i64::MAX - 1)
}
