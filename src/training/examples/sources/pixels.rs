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

/// Maximum shift of an image, in pixels of an encoder input.
const MAX_SHIFT: i32 = 3;

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

/// Random change of an image: a shift by a few pixels, and a slight change of contrast and
/// brightness. An image is not mirrored, because left and right have a meaning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Augmentation {
    dx: i32,
    dy: i32,
    contrast: f32,
    brightness: f32,
}

impl Augmentation {
    /// Samples a change.
    pub(crate) fn sample(rng: &mut ChaCha8Rng) -> Self {
        let (dx, dy) =
            (rng.random_range(-MAX_SHIFT..=MAX_SHIFT), rng.random_range(-MAX_SHIFT..=MAX_SHIFT));
        Self {
            dx,
            dy,
            contrast: rng.random_range(0.9..1.1f32),
            brightness: rng.random_range(-0.08..0.08f32),
        }
    }

    /// Changes one encoder input of `side` × `side` pixels.
    pub(crate) fn apply(&self, pixels: &[f32], side: usize) -> Arc<[f32]> {
        let last = side.saturating_sub(1);
        let plane = side * side;
        let augmented = (0..3 * plane).map(|i| {
            let (c, y, x) = (i / plane, (i % plane) / side, i % side);
            let y = y.saturating_add_signed(self.dy as isize).min(last);
            let x = x.saturating_add_signed(self.dx as isize).min(last);
            self.adjust(pixels[c * plane + y * side + x])
        });
        augmented.collect()
    }

    /// Changes an image in tiles. The shift moves the complete image, so that tiles fit together. In
    /// proportion to the image, it is the shift of [`apply`](Self::apply).
    pub(crate) fn apply_to_tiles(
        &self,
        image: &DecodedImage,
        preparation: &ImagePreparation,
    ) -> Result<TrainingImage> {
        let (width, height) = (image.width(), image.height());
        let side = preparation.side().max(1) as f64;
        let scaled =
            |shift: i32, length: usize| (f64::from(shift) * length as f64 / side).round() as isize;
        let (dx, dy) = (scaled(self.dx, width), scaled(self.dy, height));
        let mut shifted = Vec::with_capacity(3 * width * height);
        for y in 0..height {
            let row = image.row(y.saturating_add_signed(dy).min(height.saturating_sub(1)));
            for x in 0..width {
                let x = x.saturating_add_signed(dx).min(width.saturating_sub(1));
                shifted.extend_from_slice(&row[3 * x..3 * x + 3]);
            }
        }
        let shifted = DecodedImage::from_rgb(width, height, shifted);
        let mut prepared = preparation.prepare(&shifted.context("the image is empty")?)?;
        prepared.pixels = prepared.pixels.iter().map(|value| self.adjust(*value)).collect();
        Ok(prepared)
    }

    fn adjust(&self, value: f32) -> f32 {
        value * self.contrast + self.brightness
    }
}
