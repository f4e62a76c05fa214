//! Input of a training sequence. Outputs of frozen layers can replace pixels and tokens, so the
//! layers run only once.

use std::sync::Arc;

use candle::Tensor;

/// Input of a sequence in addition to its tokens.
#[derive(Clone, Debug, Default)]
pub enum SequenceInput {
    /// Tokens only; the sequence has no image.
    #[default]
    Text,
    /// Pixel values of the encoder inputs of the image, `(n, 3, s, s)`.
    Pixels(Arc<[f32]>),
    /// Patch features of the encoder inputs from a frozen vision tower, `(n·p, c_v)`, on any device.
    Features(Tensor),
    /// Hidden states of all tokens from a frozen trunk, `(t, c)`, on any device.
    Hidden(Tensor),
}
