//! Padding, output size and crop of preprocessing.

use super::error::ProcessError;
use super::image_processor::ImageProcessor;
use super::size::{CropSize, Pad, ResizeSize};
use crate::image::DecodedImage;
use crate::resize::{OutputRegion, PaddedImage};

impl ImageProcessor {
    /// Returns height and width of the pixel values if they are equal for all images.
    pub fn output_size(&self) -> Option<(usize, usize)> {
        match (self.crop_dimensions(), self.size) {
            (Ok(Some((width, height))), _) => Some((height, width)),
            (Ok(None), ResizeSize::Exact { height, width }) if self.do_resize => {
                Some((height, width))
            }
            (Ok(None), ResizeSize::ShortestEdge { shortest_edge: n } | ResizeSize::Number(n))
                if self.do_resize && self.pad == Pad::Square =>
            {
                Some((n, n))
            }
            (Err(_) | Ok(None), _) => None,
        }
    }

    /// Pads an image according to `pad`.
    pub(super) fn pad_image<'a>(&self, image: &'a DecodedImage) -> PaddedImage<'a> {
        let (width, height) = (image.width(), image.height());
        let background = self.image_mean.map(|mean| (mean * 255.) as u8);
        match self.pad {
            Pad::None => PaddedImage { image, width, height, left: 0, top: 0, background },
            Pad::Square => {
                let side = width.max(height);
                let (left, top) = ((side - width) / 2, (side - height) / 2);
                PaddedImage { image, width: side, height: side, left, top, background }
            }
        }
    }

    /// Returns the size after resizing, and the region that the crop selects.
    pub(super) fn output_region(
        &self,
        padded: &PaddedImage<'_>,
    ) -> Result<OutputRegion, ProcessError> {
        let (width, height) = if self.do_resize {
            match self.size {
                ResizeSize::Exact { height, width } => (width, height),
                ResizeSize::ShortestEdge { shortest_edge: edge } | ResizeSize::Number(edge) => {
                    let shorter = padded.width.min(padded.height).max(1);
                    let scaled = |length: usize| edge.saturating_mul(length) / shorter;
                    (scaled(padded.width), scaled(padded.height))
                }
            }
        } else {
            (padded.width, padded.height)
        };
        if width == 0 || height == 0 {
            return Err(ProcessError::invalid_settings(format!(
                "`size` is {:?}, expected lengths of at least 1 pixel",
                self.size
            )));
        }
        let Some((crop_width, crop_height)) = self.crop_dimensions()? else {
            return Ok(OutputRegion { width, height, columns: 0..width, rows: 0..height });
        };
        let (Some(total_x), Some(total_y)) =
            (width.checked_sub(crop_width), height.checked_sub(crop_height))
        else {
            return Err(ProcessError::invalid_settings(format!(
                "`crop_size` is {crop_width} x {crop_height}, expected at most {width} x {height}, the \
                 size of the resized image"
            )));
        };
        let (left, top) = (
            self.crop_rounding.leading_margin(total_x),
            self.crop_rounding.leading_margin(total_y),
        );
        let (columns, rows) = (left..left + crop_width, top..top + crop_height);
        Ok(OutputRegion { width, height, columns, rows })
    }

    /// Returns width and height of the centre crop, or `None` if there is no crop.
    fn crop_dimensions(&self) -> Result<Option<(usize, usize)>, ProcessError> {
        let size = match (self.do_center_crop, self.crop_size) {
            (Some(false), _) | (None, None) => return Ok(None),
            (Some(true), None) => {
                return Err(ProcessError::invalid_settings(
                    "`do_center_crop` is true, but `crop_size` is missing".to_owned(),
                ));
            }
            (_, Some(CropSize::Number(edge))) => (edge, edge),
            (_, Some(CropSize::Exact { height, width })) => (width, height),
        };
        if size.0 == 0 || size.1 == 0 {
            return Err(ProcessError::invalid_settings(
                "`crop_size` is 0, expected at least 1 pixel".to_owned(),
            ));
        }
        Ok(Some(size))
    }
}
