//! Errors of a vision configuration.

/// Invalid configuration of a vision encoder, or selection of a missing state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A size that must be positive is zero.
    #[error("vision config: `{field}` is 0\nhint: expected a positive number")]
    Zero {
        /// The field of [`VisionConfig`].
        field: &'static str,
    },
    /// A size above the supported maximum.
    #[error(
        "vision config: `{field}` is {size}, expected at most {most}\nhint: the file may be damaged"
    )]
    Large {
        /// The field of [`VisionConfig`].
        field: &'static str,
        /// Value of the field.
        size: usize,
        /// Supported maximum.
        most: usize,
    },
    /// The heads do not divide the hidden size.
    #[error(
        "vision config: `hidden_size` {hidden} is not a multiple of `num_attention_heads` {heads}\n\
         hint: check that both come from the same checkpoint"
    )]
    Heads {
        /// `hidden_size`.
        hidden: usize,
        /// `num_attention_heads`.
        heads: usize,
    },
    /// A patch is larger than the image.
    #[error(
        "vision config: `patch_size` {patch} is larger than `image_size` {image}\n\
         hint: check that both come from the same checkpoint"
    )]
    Patch {
        /// `patch_size`.
        patch: usize,
        /// `image_size`.
        image: usize,
    },
    /// The selected layer does not exist.
    #[error(
        "vision selection: `select_layer` {select} of an encoder with {layers} layers\n\
         hint: expected {low} to {layers}; 0 is the embeddings, -1 the last layer's output",
        low = -signed(*layers) - 1
    )]
    Layer {
        /// `select_layer`.
        select: i64,
        /// `num_hidden_layers`.
        layers: usize,
    },
}

/// A number of layers as a signed integer.
pub(super) fn signed(layers: usize) -> i64 {
    i64::try_from(layers).unwrap_or(i64::MAX - 1)
}
