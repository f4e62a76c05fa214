//! Preprocessing and augmentation of training images.

use std::sync::Arc;

use acem3_experts::ImagePackingConfig;
use acem3_experts::ModelConfig;
use acem3_experts::train::TrainingImage;
use acem3_vision::{DecodedImage, ImageProcessor, InputProcessor, TileGrid, Tiles};
use anyhow::{Context, Result};
use image::RgbImage;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::training::config::train_config::TrainConfig;

/// Maximum shift of an image, as a proportion of its width or height.
const MAX_SHIFT: f32 = 0.05;
/// Maximum angle of a rotation, in degrees.
const MAX_ANGLE: f32 = 8.0;
/// Smallest and largest scale.
const MIN_SCALE: f32 = 0.9;
const MAX_SCALE: f32 = 1.15;

/// Preprocessing of training images, exactly as for judging.
pub struct ImagePreparation {
    input: InputProcessor,
    whole: ImageProcessor,
    packing: ImagePackingConfig,
    side: usize,
}

impl ImagePreparation {
    /// Creates the preprocessing of a training.
    ///
    /// # Errors
    /// If the processor does not return the inputs of the method of tiling.
    pub fn of_training(config: &TrainConfig) -> Result<Self> {
        Self::new(config.processor(), &config.model)
    }

    /// Creates the preprocessing of a model.
    ///
    /// # Errors
    /// If the processor does not return the inputs of the method of tiling.
    pub fn new(processor: ImageProcessor, model: &ModelConfig) -> Result<Self> {
        let side = model.vision.image_size;
        let input = InputProcessor::new(processor.clone(), model.tiling.as_ref(), side)?;
        Ok(Self { input, whole: processor, packing: model.image_packing(), side })
    }

    /// Returns true if images are also encoded in tiles.
    pub(crate) fn has_tiles(&self) -> bool {
        self.packing.tiling.is_some()
    }

    /// Returns the side of an encoder input in pixels.
    pub(crate) fn side(&self) -> usize {
        self.side
    }

    /// Returns the number of image tokens of an image with this arrangement of encoder inputs.
    pub(crate) fn token_count(&self, grid: &TileGrid) -> usize {
        self.packing.token_count(grid)
    }

    /// Preprocesses an image.
    ///
    /// # Errors
    /// The image is too elongated to be resized.
    pub fn prepare(&self, image: &DecodedImage) -> Result<TrainingImage> {
        let Tiles { pixel_values, grid } = self.input.preprocess(image)?;
        Ok(TrainingImage {
            pixels: pixel_values.flatten_all()?.to_vec1::<f32>()?.into(),
            grid,
            tokens: self.token_count(&grid),
        })
    }

    /// Preprocesses an image as one encoder input.
    ///
    /// # Shapes
    /// Result: `3·s·s` values.
    pub(crate) fn prepare_whole(&self, image: &DecodedImage) -> Result<Arc<[f32]>> {
        let pixels = self.whole.preprocess(image)?;
        Ok(pixels.flatten_all()?.to_vec1::<f32>()?.into())
    }

    /// Returns a preprocessed image as pixels again; `None` if it has tiles. Preprocessing the result
    /// gives the same values up to rounding.
    pub(crate) fn to_image(&self, image: &TrainingImage) -> Option<DecodedImage> {
        let plane = self.side * self.side;
        if image.grid.inputs != 1 || image.pixels.len() != 3 * plane {
            return None;
        }
        let ImageProcessor { image_mean, image_std, .. } = &self.whole;
        let value = |i: usize| {
            let (pixel, channel) = (i / 3, i % 3);
            let value = f64::from(image.pixels[channel * plane + pixel]);
            let scaled = (value * image_std[channel] + image_mean[channel]) * 255.0;
            scaled.round().clamp(0.0, 255.0) as u8
        };
        DecodedImage::from_rgb(self.side, self.side, (0..3 * plane).map(value).collect())
    }

    /// Preprocesses the image of a phantom.
    pub(crate) fn prepare_phantom(&self, image: &RgbImage) -> Result<TrainingImage> {
        self.prepare(&decode_phantom(image)?)
    }
}

/// Converts the image of a phantom.
pub(crate) fn decode_phantom(image: &RgbImage) -> Result<DecodedImage> {
    let (w, h) = (image.width() as usize, image.height() as usize);
    let decoded = DecodedImage::from_rgb(w, h, image.as_raw().clone());
    decoded.context("the image of a phantom is empty")
}

/// Random change of an image: a slight rotation, scaling and shift, and a slight change of contrast and
/// brightness. An image is not mirrored, because left and right have a meaning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Augmentation {
    geometry: Geometry,
    contrast: f32,
    brightness: f32,
}

/// Rotation and scaling about the centre of an image, and a shift.
#[derive(Clone, Copy, Debug)]
struct Geometry {
    /// Cosine of the angle, divided by the scale.
    cos: f32,
    /// Sine of the angle, divided by the scale.
    sin: f32,
    /// Shift to the right, as a proportion of the width.
    dx: f32,
    /// Shift downwards, as a proportion of the height.
    dy: f32,
}

/// Two neighbouring pixels of a row or column, and the weight of the second.
#[derive(Clone, Copy, Debug)]
struct Neighbours {
    first: usize,
    second: usize,
    weight: f32,
}

impl Neighbours {
    /// Returns the pixels around a position; those outside of the image are its border.
    fn around(position: f32, length: usize) -> Self {
        let last = length.saturating_sub(1);
        let position = position.clamp(0.0, last as f32);
        let first = (position as usize).min(last);
        Self { first, second: (first + 1).min(last), weight: position - first as f32 }
    }
}

impl Geometry {
    fn sample(rng: &mut ChaCha8Rng) -> Self {
        let angle = rng.random_range(-MAX_ANGLE..MAX_ANGLE).to_radians();
        let scale = rng.random_range(MIN_SCALE..MAX_SCALE);
        let mut shift = || rng.random_range(-MAX_SHIFT..MAX_SHIFT);
        Self { cos: angle.cos() / scale, sin: angle.sin() / scale, dx: shift(), dy: shift() }
    }

    /// Returns a pixel of the changed image: the interpolation of the four pixels that it comes from.
    fn interpolate(
        &self,
        (x, y): (usize, usize),
        (width, height): (usize, usize),
        pixel: impl Fn(usize, usize) -> f32,
    ) -> f32 {
        let centre = |length: usize| length.saturating_sub(1) as f32 / 2.0;
        let (cx, cy) = (centre(width), centre(height));
        let (u, v) = (x as f32 - cx, y as f32 - cy);
        let source_x = self.cos * u + self.sin * v + cx - self.dx * width as f32;
        let source_y = self.cos * v - self.sin * u + cy - self.dy * height as f32;
        let (h, v) = (Neighbours::around(source_x, width), Neighbours::around(source_y, height));
        let row = |y| pixel(h.first, y) * (1.0 - h.weight) + pixel(h.second, y) * h.weight;
        row(v.first) * (1.0 - v.weight) + row(v.second) * v.weight
    }
}

impl Augmentation {
    /// Samples a change.
    pub(crate) fn sample(rng: &mut ChaCha8Rng) -> Self {
        Self {
            geometry: Geometry::sample(rng),
            contrast: rng.random_range(0.8..1.2f32),
            brightness: rng.random_range(-0.12..0.12f32),
        }
    }

    /// Changes one encoder input of `side` × `side` pixels.
    pub(crate) fn apply(&self, pixels: &[f32], side: usize) -> Arc<[f32]> {
        let plane = side * side;
        let augmented = (0..3 * plane).map(|i| {
            let (c, y, x) = (i / plane, (i % plane) / side, i % side);
            let pixel = |x: usize, y: usize| pixels[c * plane + y * side + x];
            self.adjust(self.geometry.interpolate((x, y), (side, side), pixel))
        });
        augmented.collect()
    }

    /// Changes an image in tiles. The complete image is rotated, scaled and shifted, so that tiles fit
    /// together.
    pub(crate) fn apply_to_tiles(
        &self,
        image: &DecodedImage,
        preparation: &ImagePreparation,
    ) -> Result<TrainingImage> {
        let (width, height) = (image.width(), image.height());
        let mut changed = Vec::with_capacity(3 * width * height);
        for y in 0..height {
            for x in 0..width {
                for c in 0..3 {
                    let pixel = |x: usize, y: usize| f32::from(image.row(y)[3 * x + c]);
                    let value = self.geometry.interpolate((x, y), (width, height), pixel);
                    changed.push(value.round() as u8);
                }
            }
        }
        let changed = DecodedImage::from_rgb(width, height, changed);
        let mut prepared = preparation.prepare(&changed.context("the image is empty")?)?;
        prepared.pixels = prepared.pixels.iter().map(|value| self.adjust(*value)).collect();
        Ok(prepared)
    }

    fn adjust(&self, value: f32) -> f32 {
        value * self.contrast + self.brightness
    }
}
