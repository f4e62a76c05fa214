//! Preprocessing of large images in `LLaVA-NeXT` and `LLaVA-OneVision`: the whole image, downscaled,
//! and a grid of tiles in full resolution.

use candle::Tensor;

use super::error::ProcessError;
use super::image_processor::{ImageProcessor, MAX_BUFFER_BYTES};
use super::square_tiles::SquareTiles;
use super::tile_grid::TileGrid;
use crate::image::DecodedImage;

/// Splits a large image into several encoder inputs (`image_processing_llava_next.py` and
/// `image_processing_llava_onevision.py`).
#[derive(Clone, Debug, PartialEq)]
pub struct AnyRes {
    tiles: SquareTiles,
    /// Heights and widths of the available resolutions.
    pinpoints: Vec<[usize; 2]>,
}

/// Encoder inputs of one image.
#[derive(Clone, Debug)]
pub struct Tiles {
    /// (n, 3, s, s). With [`AnyRes`] the whole image, then the tiles row by row; with
    /// [`DynamicTiles`](super::DynamicTiles) the tiles row by row, then the whole image if there is
    /// more than one tile.
    pub pixel_values: Tensor,
    /// Arrangement of the inputs.
    pub grid: TileGrid,
}

impl AnyRes {
    /// Creates the preprocessing. `processor` preprocesses the whole image and each tile.
    /// `pinpoints` are heights and widths in pixels, which must be multiples of the side of a tile.
    pub fn new(
        processor: ImageProcessor,
        pinpoints: Vec<[usize; 2]>,
    ) -> Result<Self, ProcessError> {
        let tiles = SquareTiles::new(processor)?;
        let side = tiles.side;
        if pinpoints.is_empty() {
            return Err(ProcessError::invalid_settings(
                "`image_grid_pinpoints` is empty".to_owned(),
            ));
        }
        let is_invalid = |[height, width]: &[usize; 2]| {
            let is_whole = height.is_multiple_of(side) && width.is_multiple_of(side);
            let area = height.checked_mul(*width).filter(|area| *area <= MAX_BUFFER_BYTES / 3);
            !is_whole || area.is_none_or(|area| area == 0)
        };
        if let Some([height, width]) = pinpoints.iter().copied().find(|point| is_invalid(point)) {
            return Err(ProcessError::invalid_settings(format!(
                "`image_grid_pinpoints` contains {height} x {width}, expected positive multiples \
                 of {side} and at most {} pixels",
                MAX_BUFFER_BYTES / 3
            )));
        }
        Ok(Self { tiles, pinpoints })
    }

    /// Returns the pixel values of the whole image and its tiles.
    pub fn preprocess(&self, image: &DecodedImage) -> Result<Tiles, ProcessError> {
        let (height, width) = self.best_resolution(image.height(), image.width());
        let padded = resize_onto_black(&self.tiles, image, (height, width))?;
        let mut inputs = vec![self.tiles.whole(image)?];
        inputs.extend(self.tiles.cut(&padded)?);
        let grid = TileGrid {
            inputs: inputs.len(),
            rows: height / self.tiles.side,
            columns: width / self.tiles.side,
            image_size: (image.height(), image.width()),
        };
        Ok(Tiles { pixel_values: Tensor::stack(&inputs, 0)?, grid })
    }

    /// Selects the resolution, height and width, for an image: the one that preserves most of its
    /// pixels, and among equals the one with the least padding (`select_best_resolution`).
    pub fn best_resolution(&self, height: usize, width: usize) -> (usize, usize) {
        let mut best = (0, usize::MAX, (self.tiles.side, self.tiles.side));
        for &[h, w] in &self.pinpoints {
            let scale = (w as f64 / width as f64).min(h as f64 / height as f64);
            let scaled = |length: usize| (length as f64 * scale) as usize;
            let preserved =
                scaled(width).saturating_mul(scaled(height)).min(width.saturating_mul(height));
            let padding = h.saturating_mul(w).saturating_sub(preserved);
            if preserved > best.0 || (preserved == best.0 && padding < best.1) {
                best = (preserved, padding, (h, w));
            }
        }
        best.2
    }
}

/// Returns the largest height and width inside a resolution that preserve the aspect ratio
/// (`get_patch_output_size`).
fn fit_inside(image: &DecodedImage, (height, width): (usize, usize)) -> (usize, usize) {
    let width_scale = width as f64 / image.width() as f64;
    let height_scale = height as f64 / image.height() as f64;
    let scaled = |length: usize, scale: f64| (length as f64 * scale).ceil() as usize;
    if width_scale < height_scale {
        (scaled(image.height(), width_scale).min(height), width)
    } else {
        (height, scaled(image.width(), height_scale).min(width))
    }
}

/// Resizes an image into a resolution and pads it with black on all sides.
fn resize_onto_black(
    tiles: &SquareTiles,
    image: &DecodedImage,
    (height, width): (usize, usize),
) -> Result<DecodedImage, ProcessError> {
    let scaled = tiles.resize(image, fit_inside(image, (height, width)))?;
    let left = width.saturating_sub(scaled.width()) / 2;
    let top = height.saturating_sub(scaled.height()) / 2;
    let mut data = vec![0u8; 3 * width * height];
    for (y, row) in data.chunks_exact_mut(3 * width).skip(top).enumerate() {
        if y >= scaled.height() {
            break;
        }
        for (target, source) in row.iter_mut().skip(3 * left).zip(scaled.row(y)) {
            *target = *source;
        }
    }
    DecodedImage::from_rgb(width, height, data)
        .ok_or_else(|| ProcessError::invalid_settings("a resolution has no pixels".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RegionRounding;
    use crate::processor::CropSize;
    use crate::processor::ResizeSize;

    fn processor() -> ImageProcessor {
        ImageProcessor {
            size: ResizeSize::Number(4),
            crop_size: Some(CropSize::Number(4)),
            ..ImageProcessor::default()
        }
    }

    fn any_res() -> AnyRes {
        AnyRes::new(processor(), vec![[4, 8], [8, 4], [8, 8]]).unwrap()
    }

    #[test]
    fn best_resolution_preserves_pixels_with_least_padding() {
        let any_res = any_res();
        assert_eq!(any_res.best_resolution(10, 30), (4, 8));
        assert_eq!(any_res.best_resolution(30, 10), (8, 4));
        assert_eq!(any_res.best_resolution(20, 20), (8, 8));
        // All three preserve all pixels.
        assert_eq!(any_res.best_resolution(2, 2), (4, 8));
    }

    #[test]
    fn tiles_show_the_image_with_black_padding() {
        let white = DecodedImage::from_rgb(30, 10, vec![255; 900]).unwrap();
        let tiles = any_res().preprocess(&white).unwrap();
        assert_eq!(tiles.pixel_values.dims(), [3, 3, 4, 4]);
        let grid = tiles.grid;
        assert_eq!((grid.inputs, grid.rows, grid.columns), (3, 1, 2));
        let red = tiles.pixel_values.get(1).unwrap().get(0).unwrap();
        let rows = red.to_vec2::<f32>().unwrap();
        // The resized image is 8 × 3 pixels (2.67 rounded up), with no row of padding above and one
        // below.
        assert!(rows[2][0] > 1.9 && rows[0][0] > 1.9 && rows[3][0] < -1.7);
        assert_eq!(grid.content_region(3, RegionRounding::Decimals), (0..3, 0..6));
    }

    #[test]
    fn invalid_tile_settings_are_rejected() {
        let variable_size = ImageProcessor::default();
        assert!(AnyRes::new(variable_size, vec![[4, 4]]).is_err());
        for points in [vec![], vec![[4, 6]], vec![[0, 4]], vec![[1 << 40, 1 << 40]]] {
            let wrong = AnyRes::new(processor(), points);
            assert!(wrong.unwrap_err().to_string().contains("pinpoints"));
        }
    }
}
