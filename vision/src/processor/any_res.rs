//! `LLaVA-NeXT`'s preprocessing of large images: a downscaled image and a grid of full-resolution tiles.

use std::ops::Range;

use candle::Tensor;

use super::error::ProcessError;
use super::image_processor::{ImageProcessor, MAX_BYTES};
use crate::image::DecodedImage;
use crate::resize::{Canvas, Target, buffer_size, resize};

/// Splits a large image into several encoder inputs (`image_processing_llava_next.py`).
#[derive(Clone, Debug, PartialEq)]
pub struct AnyRes {
    processor: ImageProcessor,
    side: usize,
    /// Height and width of the resolutions to choose from.
    pinpoints: Vec<[usize; 2]>,
}

/// Encoder inputs of one image.
#[derive(Clone, Debug)]
pub struct Tiles {
    /// (1 + rows · columns, 3, s, s): the whole image, then the tiles row by row.
    pub pixel_values: Tensor,
    /// Rows and columns of tiles.
    pub grid: (usize, usize),
    /// Height and width of the image.
    pub image: (usize, usize),
}

impl AnyRes {
    /// `processor` prepares the whole image and each tile; `pinpoints` are heights and widths in pixels, each
    /// a multiple of a tile's side.
    pub fn new(
        processor: ImageProcessor,
        pinpoints: Vec<[usize; 2]>,
    ) -> Result<Self, ProcessError> {
        let side = match processor.output_size() {
            Some((height, width)) if height == width && height > 0 => height,
            size => {
                return Err(ProcessError::settings(format!(
                    "tiles are squares of a fixed size, got {size:?}"
                )));
            }
        };
        if pinpoints.is_empty() {
            return Err(ProcessError::settings(
                "`image_grid_pinpoints` is empty".to_owned(),
            ));
        }
        let unfit = |[height, width]: &[usize; 2]| {
            let whole = height.is_multiple_of(side) && width.is_multiple_of(side);
            let area = height
                .checked_mul(*width)
                .filter(|area| *area <= MAX_BYTES / 3);
            !whole || area.is_none_or(|area| area == 0)
        };
        if let Some([height, width]) = pinpoints.iter().copied().find(|point| unfit(point)) {
            return Err(ProcessError::settings(format!(
                "`image_grid_pinpoints` has {height} x {width}, expected multiples of {side}"
            )));
        }
        Ok(Self {
            processor,
            side,
            pinpoints,
        })
    }

    /// The whole image and its tiles.
    pub fn preprocess(&self, image: &DecodedImage) -> Result<Tiles, ProcessError> {
        let (height, width) = self.resolution(image.height(), image.width());
        let padded = scaled_onto_black(self, image, (height, width))?;
        let grid = (height / self.side, width / self.side);
        // Scaled without cropping, so that the whole image is visible.
        let whole = view(self, image, (self.side, self.side))?;
        let mut inputs = vec![self.processor.preprocess(&whole)?];
        for row in 0..grid.0 {
            for column in 0..grid.1 {
                let tile = tile(&padded, row, column, self.side).ok_or_else(|| {
                    ProcessError::settings("a tile is outside the image".to_owned())
                })?;
                inputs.push(self.processor.preprocess(&tile)?);
            }
        }
        Ok(Tiles {
            pixel_values: Tensor::stack(&inputs, 0)?,
            grid,
            image: (image.height(), image.width()),
        })
    }

    /// Height and width to which an image is scaled: of those to choose from the one that keeps most of its
    /// pixels, and of several such the one with the least padding (`select_best_resolution`).
    pub fn resolution(&self, height: usize, width: usize) -> (usize, usize) {
        let mut best = (0, usize::MAX, (self.side, self.side));
        for &[h, w] in &self.pinpoints {
            let scale = (w as f64 / width as f64).min(h as f64 / height as f64);
            let scaled = |length: usize| (length as f64 * scale) as usize;
            let kept = scaled(width)
                .saturating_mul(scaled(height))
                .min(width.saturating_mul(height));
            let wasted = h.saturating_mul(w).saturating_sub(kept);
            if kept > best.0 || (kept == best.0 && wasted < best.1) {
                best = (kept, wasted, (h, w));
            }
        }
        best.2
    }
}

/// Height and width of an image inside a resolution, its proportion kept (`get_patch_output_size`).
fn inside(image: &DecodedImage, (height, width): (usize, usize)) -> (usize, usize) {
    let across = width as f64 / image.width() as f64;
    let down = height as f64 / image.height() as f64;
    let scaled = |length: usize, scale: f64| (length as f64 * scale).ceil() as usize;
    if across < down {
        (scaled(image.height(), across).min(height), width)
    } else {
        (height, scaled(image.width(), down).min(width))
    }
}

/// The image scaled to exactly that height and width.
fn view(
    any_res: &AnyRes,
    image: &DecodedImage,
    (height, width): (usize, usize),
) -> Result<DecodedImage, ProcessError> {
    let canvas = Canvas {
        image,
        width: image.width(),
        height: image.height(),
        left: 0,
        top: 0,
        ground: [0; 3],
    };
    let target = Target {
        width,
        height,
        columns: 0..width,
        rows: 0..height,
    };
    let too_oblong = || ProcessError::Oblong {
        width: image.width(),
        height: image.height(),
    };
    if height == 0
        || width == 0
        || buffer_size(&canvas, &target).is_none_or(|size| size > MAX_BYTES)
    {
        return Err(too_oblong());
    }
    let data = resize(&canvas, &target, any_res.processor.resample);
    DecodedImage::from_rgb(width, height, data).ok_or_else(too_oblong)
}

/// The image scaled into a resolution, in its middle, with black around it.
fn scaled_onto_black(
    any_res: &AnyRes,
    image: &DecodedImage,
    (height, width): (usize, usize),
) -> Result<DecodedImage, ProcessError> {
    let scaled = view(any_res, image, inside(image, (height, width)))?;
    let left = width.saturating_sub(scaled.width()) / 2;
    let top = height.saturating_sub(scaled.height()) / 2;
    let mut data = vec![0u8; 3 * width * height];
    for (y, line) in data.chunks_exact_mut(3 * width).skip(top).enumerate() {
        if y >= scaled.height() {
            break;
        }
        for (to, from) in line.iter_mut().skip(3 * left).zip(scaled.row(y)) {
            *to = *from;
        }
    }
    DecodedImage::from_rgb(width, height, data)
        .ok_or_else(|| ProcessError::settings("a resolution of no pixels".to_owned()))
}

fn tile(image: &DecodedImage, row: usize, column: usize, side: usize) -> Option<DecodedImage> {
    let mut data = Vec::with_capacity(3 * side * side);
    for y in row * side..(row + 1) * side {
        let line = image.row(y);
        data.extend_from_slice(line.get(3 * column * side..3 * (column + 1) * side)?);
    }
    DecodedImage::from_rgb(side, side, data)
}

impl Tiles {
    /// Which rows and columns of features show the image and not the black beside it, when each tile yields
    /// `side` × `side` of them and the tiles are put together (`unpad_image`).
    pub fn unpadded(&self, side: usize) -> (Range<usize>, Range<usize>) {
        let (rows, columns) = (self.grid.0 * side, self.grid.1 * side);
        let (height, width) = (self.image.0 as f64, self.image.1 as f64);
        // Rounded to seven digits before it is cut, so that an exact size is not one short.
        let whole = |length: f64| ((length * 1e7).round_ties_even() / 1e7) as usize;
        if width / height > columns as f64 / rows as f64 {
            let kept = whole(height * (columns as f64 / width));
            let margin = rows.saturating_sub(kept) / 2;
            (margin..rows - margin, 0..columns)
        } else {
            let kept = whole(width * (rows as f64 / height));
            let margin = columns.saturating_sub(kept) / 2;
            (0..rows, margin..columns - margin)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processor::CropSize;
    use crate::processor::Size;

    fn any_res() -> AnyRes {
        let processor = ImageProcessor {
            size: Size::Number(4),
            crop_size: Some(CropSize::Number(4)),
            ..ImageProcessor::default()
        };
        AnyRes::new(processor, vec![[4, 8], [8, 4], [8, 8]]).unwrap()
    }

    #[test]
    fn the_resolution_keeps_pixels_and_wastes_few() {
        let any_res = any_res();
        assert_eq!(any_res.resolution(10, 30), (4, 8));
        assert_eq!(any_res.resolution(30, 10), (8, 4));
        assert_eq!(any_res.resolution(20, 20), (8, 8));
        // All three keep all of it.
        assert_eq!(any_res.resolution(2, 2), (4, 8));
    }

    #[test]
    fn tiles_are_the_image_between_black() {
        let white = DecodedImage::from_rgb(30, 10, vec![255; 900]).unwrap();
        let tiles = any_res().preprocess(&white).unwrap();
        assert_eq!(tiles.pixel_values.dims(), [3, 3, 4, 4]);
        assert_eq!(tiles.grid, (1, 2));
        let red = tiles.pixel_values.get(1).unwrap().get(0).unwrap();
        let rows = red.to_vec2::<f32>().unwrap();
        // 8 pixels across are 3 down (2.67 rounded up), none above, one below.
        assert!(rows[2][0] > 1.9 && rows[0][0] > 1.9 && rows[3][0] < -1.7);
        assert_eq!(tiles.unpadded(3), (0..3, 0..6));
        let narrow = Tiles {
            grid: (2, 2),
            image: (100, 20),
            ..tiles
        };
        assert_eq!(narrow.unpadded(10), (0..20, 8..12));
    }

    #[test]
    fn settings_without_tiles_are_rejected() {
        let free = ImageProcessor::default();
        assert!(AnyRes::new(free, vec![[4, 4]]).is_err());
        for points in [vec![], vec![[4, 6]], vec![[0, 4]], vec![[1 << 40, 1 << 40]]] {
            let wrong = AnyRes::new(any_res().processor, points);
            assert!(wrong.unwrap_err().to_string().contains("pinpoints"));
        }
    }
}
