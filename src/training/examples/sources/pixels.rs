//! Preprocessing and augmentation of training images.

use std::sync::Arc;

use acem3_vision::{DecodedImage, ImageProcessor};
use anyhow::{Context, Result};
use image::RgbImage;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Pixel values of one image.
///
/// # Shapes
/// `3·s·s`.
pub(crate) type Pixels = Arc<[f32]>;

/// Maximum shift of an image, in pixels of the model's input.
const MAX_SHIFT: i32 = 3;

/// Preprocesses an image exactly as for judging.
pub(crate) fn preprocess(image: &DecodedImage, processor: &ImageProcessor) -> Result<Pixels> {
    let tensor = processor.preprocess(image)?;
    Ok(tensor.flatten_all()?.to_vec1::<f32>()?.into())
}

/// Preprocesses the image of a phantom.
pub(crate) fn preprocess_phantom(image: &RgbImage, processor: &ImageProcessor) -> Result<Pixels> {
    let (w, h) = (image.width() as usize, image.height() as usize);
    let decoded = DecodedImage::from_rgb(w, h, image.as_raw().clone());
    preprocess(&decoded.context("the image of a phantom is empty")?, processor)
}

/// Shifts an image by a few pixels and changes its contrast and brightness slightly. Does not
/// mirror it, because left and right have a meaning.
pub(crate) fn augment(pixels: &Pixels, side: usize, rng: &mut ChaCha8Rng) -> Pixels {
    let (dx, dy) =
        (rng.random_range(-MAX_SHIFT..=MAX_SHIFT), rng.random_range(-MAX_SHIFT..=MAX_SHIFT));
    let (contrast, brightness) = (rng.random_range(0.9..1.1f32), rng.random_range(-0.08..0.08f32));
    let last = side.saturating_sub(1);
    let plane = side * side;
    let augmented = (0..3 * plane).map(|i| {
        let (c, y, x) = (i / plane, (i % plane) / side, i % side);
        let y = y.saturating_add_signed(dy as isize).min(last);
        let x = x.saturating_add_signed(dx as isize).min(last);
        pixels[c * plane + y * side + x] * contrast + brightness
    });
    Arc::from(augmented.collect::<Vec<_>>())
}
