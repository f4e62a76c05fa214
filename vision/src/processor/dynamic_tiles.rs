//! Preprocessing of images in `InternVL`: a grid of tiles with an aspect ratio close to that of the
//! image, then the whole image, downscaled.

use candle::Tensor;

use super::any_res::Tiles;
use super::error::ProcessError;
use super::image_processor::{ImageProcessor, MAX_BUFFER_BYTES};
use super::square_tiles::SquareTiles;
use super::tile_grid::TileGrid;
use crate::image::DecodedImage;

/// Largest supported number of tiles. Published models have 6 to 40.
const MAX_TILES: usize = 256;

/// Splits an image into a grid of tiles (`image_processing_got_ocr2.py` of `transformers`,
/// `dynamic_preprocess` in `dataset.py` of `InternVL`'s own code).
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicTiles {
    tiles: SquareTiles,
    /// Columns and rows of all grids, in increasing order of the number of tiles.
    grids: Vec<(usize, usize)>,
    thumbnail: bool,
}

impl DynamicTiles {
    /// Creates the preprocessing. `processor` preprocesses each tile. A grid has `min_tiles` to
    /// `max_tiles` tiles. If `thumbnail` is true, the whole image follows two or more tiles.
    ///
    /// # Errors
    /// The processor does not return squares of one size, or the numbers of tiles are invalid.
    pub fn new(
        processor: ImageProcessor,
        min_tiles: usize,
        max_tiles: usize,
        thumbnail: bool,
    ) -> Result<Self, ProcessError> {
        let tiles = SquareTiles::new(processor)?;
        let side = tiles.side;
        let most_pixels = side.saturating_mul(side).saturating_mul(max_tiles);
        if min_tiles == 0
            || min_tiles > max_tiles
            || max_tiles > MAX_TILES
            || most_pixels > MAX_BUFFER_BYTES / 3
        {
            return Err(ProcessError::invalid_settings(format!(
                "the number of tiles is {min_tiles} to {max_tiles}, expected at least 1, at most \
                 {MAX_TILES}, and at most {} pixels in all tiles of {side} x {side}",
                MAX_BUFFER_BYTES / 3
            )));
        }
        let columns = 1..=max_tiles;
        let grids = columns.flat_map(|columns| (1..=max_tiles).map(move |rows| (columns, rows)));
        let is_allowed =
            |(columns, rows): &(usize, usize)| (min_tiles..=max_tiles).contains(&(columns * rows));
        let mut grids: Vec<_> = grids.filter(is_allowed).collect();
        // Stable: grids of equally many tiles stay in the order of their columns.
        grids.sort_by_key(|(columns, rows)| columns * rows);
        Ok(Self { tiles, grids, thumbnail })
    }

    /// Returns the rows and columns of the grid for an image: the one whose aspect ratio is closest
    /// to that of the image (`get_optimal_tiled_canvas`). Among equally close grids, it is the
    /// largest one of which the image has more than half of the pixels, otherwise the smallest.
    pub fn grid(&self, height: usize, width: usize) -> (usize, usize) {
        let aspect_ratio = width as f64 / height as f64;
        let pixels = width as f64 * height as f64;
        let side = self.tiles.side;
        let mut best = (f64::INFINITY, (1, 1));
        for &(columns, rows) in &self.grids {
            let difference = (aspect_ratio - columns as f64 / rows as f64).abs();
            let half_of_pixels = 0.5 * (side * side * columns * rows) as f64;
            let is_closer = difference < best.0;
            let is_equal = difference.total_cmp(&best.0).is_eq();
            if is_closer || (is_equal && pixels > half_of_pixels) {
                best = (difference, (rows, columns));
            }
        }
        best.1
    }

    /// Returns the pixel values of all tiles, row by row, and of the whole image if it follows.
    ///
    /// # Errors
    /// The image is too elongated to be resized.
    pub fn preprocess(&self, image: &DecodedImage) -> Result<Tiles, ProcessError> {
        let (rows, columns) = self.grid(image.height(), image.width());
        let size = (rows * self.tiles.side, columns * self.tiles.side);
        let mut inputs = self.tiles.cut(&self.tiles.resize(image, size)?)?;
        if self.thumbnail && inputs.len() > 1 {
            inputs.push(self.tiles.whole(image)?);
        }
        let image_size = (image.height(), image.width());
        let grid = TileGrid { inputs: inputs.len(), rows, columns, image_size };
        Ok(Tiles { pixel_values: Tensor::stack(&inputs, 0)?, grid })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processor::ResizeSize;

    fn processor() -> ImageProcessor {
        ImageProcessor {
            size: ResizeSize::Exact { height: 4, width: 4 },
            ..ImageProcessor::default()
        }
    }

    #[test]
    fn equally_close_grids_depend_on_the_number_of_pixels() {
        let tiles = DynamicTiles::new(processor(), 1, 6, true).unwrap();
        assert_eq!(tiles.grid(10, 21), (1, 2));
        // Grids of 2 x 1 tiles have at most 32 pixels, those of 4 x 1 64.
        assert_eq!(tiles.grid(3, 3), (1, 1));
        assert_eq!(tiles.grid(6, 6), (2, 2));
        // 1 x 1 and 2 columns of 1 row are equally close to 1.5, but 3 columns of 2 rows are closer.
        assert_eq!(tiles.grid(2, 3), (2, 3));
    }

    #[test]
    fn whole_image_follows_two_or_more_tiles() {
        let image = |width: usize, height: usize| {
            let data = vec![200; 3 * width * height];
            DecodedImage::from_rgb(width, height, data).unwrap()
        };
        let count = |thumbnail, image: &DecodedImage| {
            let tiles = DynamicTiles::new(processor(), 1, 6, thumbnail).unwrap();
            tiles.preprocess(image).unwrap().pixel_values.dim(0).unwrap()
        };
        assert_eq!((count(true, &image(30, 10)), count(false, &image(30, 10))), (4, 3));
        assert_eq!((count(true, &image(2, 2)), count(false, &image(2, 2))), (1, 1));
    }

    #[test]
    fn invalid_numbers_of_tiles_are_rejected() {
        for (min, max) in [(0, 3), (4, 3), (1, 1 << 40)] {
            let error = DynamicTiles::new(processor(), min, max, true).unwrap_err().to_string();
            assert!(error.contains(&format!("is {min} to {max}")), "{error}");
        }
        assert!(DynamicTiles::new(ImageProcessor::default(), 1, 2, true).is_err());
    }
}
