//! What a training sequence is computed from: the less of the model is trained, the further up it can
//! begin.

use std::sync::Arc;

use candle::Tensor;

/// What is known of a sequence beside its tokens.
#[derive(Clone, Debug, Default)]
pub enum Given {
    /// Nothing; it has no image.
    #[default]
    Text,
    /// Its image, `(3, s, s)`.
    Pixels(Arc<[f32]>),
    /// What a frozen tower made of its image, `(p, c_v)`, on any device.
    Features(Tensor),
    /// What a frozen trunk made of all its tokens, `(t, c)`, on any device.
    Hidden(Tensor),
}
