//! Square encoder inputs that are cut from a resized image.

use candle::Tensor;

use super::error::ProcessError;
use super::image_processor::{ImageProcessor, MAX_BUFFER_BYTES};
use crate::image::DecodedImage;
use crate::resize::{OutputRegion, PaddedImage, buffer_size, resize};

/// Cuts images into tiles and preprocesses each of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SquareTiles {
    processor: ImageProcessor,
    /// Side of a tile in pixels.
    pub(super) side: usize,
}

impl SquareTiles {
    /// Creates the preprocessing. `processor` preprocesses each tile.
    ///
    /// # Errors
    /// The processor does not return squares of one size.
    pub(super) fn new(processor: ImageProcessor) -> Result<Self, ProcessError> {
        match processor.output_size() {
            Some((height, side)) if height == side && side > 0 => Ok(Self { processor, side }),
            size => Err(ProcessError::invalid_settings(format!(
                "the output size is {size:?}, expected a fixed square for tiles"
            ))),
        }
    }

    /// Resizes an image to exactly this height and width.
    ///
    /// # Errors
    /// The image is too elongated to be resized.
    pub(super) fn resize(
        &self,
        image: &DecodedImage,
        (height, width): (usize, usize),
    ) -> Result<DecodedImage, ProcessError> {
        let padded = PaddedImage {
            image,
            width: image.width(),
            height: image.height(),
            left: 0,
            top: 0,
            background: [0; 3],
        };
        let region = OutputRegion { width, height, columns: 0..width, rows: 0..height };
        let too_elongated =
            || ProcessError::TooElongated { width: image.width(), height: image.height() };
        if height == 0
            || width == 0
            || buffer_size(&padded, &region).is_none_or(|size| size > MAX_BUFFER_BYTES)
        {
            return Err(too_elongated());
        }
        let data = resize(&padded, &region, self.processor.resample);
        DecodedImage::from_rgb(width, height, data).ok_or_else(too_elongated)
    }

    /// Returns the pixel values of the whole image. It is resized without a crop, so that all of it is
    /// visible.
    ///
    /// # Errors
    /// The image is too elongated to be resized.
    pub(super) fn whole(&self, image: &DecodedImage) -> Result<Tensor, ProcessError> {
        self.processor.preprocess(&self.resize(image, (self.side, self.side))?)
    }

    /// Returns the pixel values of the tiles of a resized image, row by row.
    pub(super) fn cut(&self, resized: &DecodedImage) -> Result<Vec<Tensor>, ProcessError> {
        let (rows, columns) = (resized.height() / self.side, resized.width() / self.side);
        let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let tiles = places.map(|(row, column)| {
            let tile = self.crop(resized, row, column).ok_or_else(|| {
                ProcessError::invalid_settings("a tile is outside the image".to_owned())
            })?;
            self.processor.preprocess(&tile)
        });
        tiles.collect()
    }

    /// Crops one tile. Returns `None` if it is outside the image.
    fn crop(&self, image: &DecodedImage, row: usize, column: usize) -> Option<DecodedImage> {
        let side = self.side;
        let mut data = Vec::with_capacity(3 * side * side);
        for y in row * side..(row + 1) * side {
            let line = image.row(y);
            data.extend_from_slice(line.get(3 * column * side..3 * (column + 1) * side)?);
        }
        DecodedImage::from_rgb(side, side, data)
    }
}
