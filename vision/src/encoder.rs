//! Interface of vision encoders.

use candle::{Result, Tensor};

use crate::tower::VisionTower;

/// Maps images to features.
pub trait Encoder: Send + Sync {
    /// Computes the features of images.
    ///
    /// # Shapes
    /// pixel values (b, 3, s, s) → (b, p, `c_v`).
    fn encode(&self, pixel_values: &Tensor) -> Result<Tensor>;

    /// Returns the number of features `p` per image.
    fn token_count(&self) -> usize;

    /// Returns the width `c_v` of a feature.
    fn hidden_size(&self) -> usize;

    /// Returns the side `s` of an input image in pixels.
    fn image_size(&self) -> usize;

    /// Returns the number of weights.
    fn parameter_count(&self) -> usize;
}

impl Encoder for VisionTower {
    fn encode(&self, pixel_values: &Tensor) -> Result<Tensor> {
        self.forward(pixel_values)
    }

    fn token_count(&self) -> usize {
        VisionTower::token_count(self)
    }

    fn hidden_size(&self) -> usize {
        VisionTower::hidden_size(self)
    }

    fn image_size(&self) -> usize {
        self.config().image_size
    }

    fn parameter_count(&self) -> usize {
        self.config().parameter_count()
    }
}
