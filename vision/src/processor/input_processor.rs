//! Preprocessing of an image into one or several encoder inputs.

use super::any_res::{AnyRes, Tiles};
use super::dynamic_tiles::DynamicTiles;
use super::error::ProcessError;
use super::image_processor::ImageProcessor;
use super::tile_grid::TileGrid;
use super::tiling::Tiling;
use crate::image::DecodedImage;

/// Preprocesses images with or without tiles.
#[derive(Clone, Debug, PartialEq)]
pub enum InputProcessor {
    /// The complete image is the only input.
    Whole(ImageProcessor),
    /// The complete image, followed by tiles.
    AnyRes(AnyRes),
    /// Tiles, followed by the complete image.
    Dynamic(DynamicTiles),
}

impl InputProcessor {
    /// Creates the preprocessing. `processor` preprocesses each input, and `image_size` is the side of
    /// an input in pixels.
    ///
    /// # Errors
    /// The processor does not support the method of tiling, or its settings are invalid.
    pub fn new(
        processor: ImageProcessor,
        tiling: Option<&Tiling>,
        image_size: usize,
    ) -> Result<Self, ProcessError> {
        Ok(match tiling {
            None => Self::Whole(processor),
            Some(Tiling::Pinpoints(pinpoints)) => {
                Self::AnyRes(AnyRes::new(processor, pinpoints.clone())?)
            }
            Some(Tiling::AnyResMax(settings)) => {
                Self::AnyRes(AnyRes::new(processor, settings.resolutions.in_pixels(image_size))?)
            }
            Some(Tiling::Dynamic { min_tiles, max_tiles, thumbnail }) => {
                Self::Dynamic(DynamicTiles::new(processor, *min_tiles, *max_tiles, *thumbnail)?)
            }
        })
    }

    /// Returns the encoder inputs of an image.
    ///
    /// # Errors
    /// The image is too elongated to be resized.
    pub fn preprocess(&self, image: &DecodedImage) -> Result<Tiles, ProcessError> {
        match self {
            Self::Whole(processor) => Ok(Tiles {
                pixel_values: processor.preprocess(image)?.unsqueeze(0)?,
                grid: TileGrid::whole((image.height(), image.width())),
            }),
            Self::AnyRes(any_res) => any_res.preprocess(image),
            Self::Dynamic(tiles) => tiles.preprocess(image),
        }
    }
}
