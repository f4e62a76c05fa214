//! Interface of vision encoders in a comparison.

use candle::{Result, Tensor};

use crate::tower::VisionTower;

/// Maps images to features.
pub trait Encoder: Send + Sync {
    /// The features of images.
    ///
    /// # Shapes
    /// pixel values (b, 3, s, s) → (b, p, `c_v`).
    fn features(&self, pixel_values: &Tensor) -> Result<Tensor>;

    /// Features `p` of one image.
    fn tokens(&self) -> usize;

    /// Width `c_v` of a feature.
    fn hidden_size(&self) -> usize;

    /// Side `s` of an image in pixels.
    fn image_size(&self) -> usize;

    /// Number of weights.
    fn parameters(&self) -> usize;
}

impl Encoder for VisionTower {
    fn features(&self, pixel_values: &Tensor) -> Result<Tensor> {
        self.forward(pixel_values)
    }

    fn tokens(&self) -> usize {
        VisionTower::tokens(self)
    }

    fn hidden_size(&self) -> usize {
        VisionTower::hidden_size(self)
    }

    fn image_size(&self) -> usize {
        self.config().image_size
    }

    fn parameters(&self) -> usize {
        self.config().parameters()
    }
}
