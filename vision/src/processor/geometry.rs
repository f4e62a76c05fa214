//! Output size and crop of preprocessing.

use super::error::ProcessError;
use super::image_processor::ImageProcessor;
use super::size::{CropSize, Pad, Size};
use crate::image::DecodedImage;
use crate::resize::{Canvas, Target};

impl ImageProcessor {
    /// Height and width of the pixel values, where they are the same for every image.
    pub fn output_size(&self) -> Option<(usize, usize)> {
        match (self.crop(), self.size) {
            (Ok(Some((width, height))), _) => Some((height, width)),
            (Ok(None), Size::Exact { height, width }) if self.do_resize => Some((height, width)),
            (Ok(None), Size::ShortestEdge { shortest_edge: n } | Size::Number(n))
                if self.do_resize && self.pad == Pad::Square =>
            {
                Some((n, n))
            }
            (Err(_) | Ok(None), _) => None,
        }
    }

    /// The image on its ground.
    pub(super) fn canvas<'a>(&self, image: &'a DecodedImage) -> Canvas<'a> {
        let (width, height) = (image.width(), image.height());
        let ground = self.image_mean.map(|mean| (mean * 255.) as u8);
        match self.pad {
            Pad::None => Canvas {
                image,
                width,
                height,
                left: 0,
                top: 0,
                ground,
            },
            Pad::Square => {
                let side = width.max(height);
                let (left, top) = ((side - width) / 2, (side - height) / 2);
                Canvas {
                    image,
                    width: side,
                    height: side,
                    left,
                    top,
                    ground,
                }
            }
        }
    }

    /// The size after scaling, and the part of it that is kept.
    pub(super) fn target(&self, canvas: &Canvas<'_>) -> Result<Target, ProcessError> {
        let (width, height) = if self.do_resize {
            match self.size {
                Size::Exact { height, width } => (width, height),
                Size::ShortestEdge {
                    shortest_edge: edge,
                }
                | Size::Number(edge) => {
                    let short = canvas.width.min(canvas.height).max(1);
                    let scaled = |length: usize| edge.saturating_mul(length) / short;
                    (scaled(canvas.width), scaled(canvas.height))
                }
            }
        } else {
            (canvas.width, canvas.height)
        };
        if width == 0 || height == 0 {
            return Err(ProcessError::settings(format!(
                "`size` is {:?}, expected positive numbers",
                self.size
            )));
        }
        let Some((crop_width, crop_height)) = self.crop()? else {
            return Ok(Target {
                width,
                height,
                columns: 0..width,
                rows: 0..height,
            });
        };
        let (Some(left), Some(top)) = (
            width.checked_sub(crop_width),
            height.checked_sub(crop_height),
        ) else {
            return Err(ProcessError::settings(format!(
                "`crop_size` {crop_width} x {crop_height} is larger than the scaled image, \
                 {width} x {height}"
            )));
        };
        let (left, top) = (self.centre.first(left), self.centre.first(top));
        let (columns, rows) = (left..left + crop_width, top..top + crop_height);
        Ok(Target {
            width,
            height,
            columns,
            rows,
        })
    }

    /// Width and height of the part that is cut out, if one is.
    fn crop(&self) -> Result<Option<(usize, usize)>, ProcessError> {
        let size = match (self.do_center_crop, self.crop_size) {
            (Some(false), _) | (None, None) => return Ok(None),
            (Some(true), None) => {
                return Err(ProcessError::settings(
                    "`do_center_crop` without a `crop_size`".to_owned(),
                ));
            }
            (_, Some(CropSize::Number(edge))) => (edge, edge),
            (_, Some(CropSize::Exact { height, width })) => (width, height),
        };
        if size.0 == 0 || size.1 == 0 {
            return Err(ProcessError::settings(
                "`crop_size` is 0, expected a positive number".to_owned(),
            ));
        }
        Ok(Some(size))
    }
}
