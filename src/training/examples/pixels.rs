//! Images as a model in training takes them: preprocessed, and slightly different each time.

use std::sync::Arc;

use acem3_vision::{DecodedImage, ImageProcessor};
use anyhow::{Context, Result};
use image::RgbImage;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::training::examples::example::Pixels;

/// The furthest an image is moved, in pixels of the model's input.
const SHIFT: i32 = 3;

/// The pixel values of an image, as the panel will see it.
pub(crate) fn pixels(image: &DecodedImage, processor: &ImageProcessor) -> Result<Pixels> {
    let tensor = processor.preprocess(image)?;
    Ok(tensor.flatten_all()?.to_vec1::<f32>()?.into())
}

/// The pixel values of a drawn image.
pub(crate) fn drawn(image: &RgbImage, processor: &ImageProcessor) -> Result<Pixels> {
    let (w, h) = (image.width() as usize, image.height() as usize);
    let decoded = DecodedImage::from_rgb(w, h, image.as_raw().clone());
    pixels(&decoded.context("the drawn image is empty")?, processor)
}

/// The same image moved by a few pixels, its contrast and brightness a little changed. It is never
/// mirrored: left and right mean something.
pub(crate) fn jitter(pixels: &Pixels, side: usize, rng: &mut ChaCha8Rng) -> Pixels {
    let (dx, dy) = (
        rng.random_range(-SHIFT..=SHIFT),
        rng.random_range(-SHIFT..=SHIFT),
    );
    let (gain, lift) = (
        rng.random_range(0.9..1.1f32),
        rng.random_range(-0.08..0.08f32),
    );
    let last = side.saturating_sub(1);
    let plane = side * side;
    let moved = (0..3 * plane).map(|i| {
        let (c, y, x) = (i / plane, (i % plane) / side, i % side);
        let y = y.saturating_add_signed(dy as isize).min(last);
        let x = x.saturating_add_signed(dx as isize).min(last);
        pixels[c * plane + y * side + x] * gain + lift
    });
    Arc::from(moved.collect::<Vec<_>>())
}
