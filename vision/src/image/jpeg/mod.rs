//! Decodes JPEG files like libjpeg and Pillow, as closely as `jpeg_decoder` can: subsampled colour
//! is upsampled with libjpeg's filter, and CMYK is converted to RGB with Pillow's formula.

mod bit_reader;
mod block;
mod frame;
mod missing_data;
mod restart_intervals;
mod segments;

use std::io::Cursor;

use image::error::{
    DecodingError, ImageFormatHint, LimitError, LimitErrorKind, UnsupportedError,
    UnsupportedErrorKind,
};
use image::{ColorType, ImageDecoder, ImageError, ImageFormat, ImageResult};
use jpeg_decoder::{Decoder, Error, ImageInfo, PixelFormat};

use super::error::DecodeError;
use super::format::FileFormat;
pub(super) use missing_data::is_data_missing;
pub(super) use segments::has_end_marker;

/// Maximum number of scans of an image times its number of pixels.
///
/// Each scan of a progressive image visits every pixel, and its data can be a few bytes. Usual
/// encoders write about ten scans, which this limit allows for 100 megapixels.
const MAX_SCAN_PIXELS: u64 = 1_200_000_000;

/// Checks that decoding the scans of an image of `pixels` pixels is not too much work.
pub(super) fn check_scan_work(bytes: &[u8], pixels: u64) -> Result<(), DecodeError> {
    let scans = segments::max_scans(bytes);
    let limit = usize::try_from(MAX_SCAN_PIXELS / pixels.max(1)).unwrap_or(usize::MAX).max(1);
    if scans > limit {
        return Err(DecodeError::TooManyScans { format: FileFormat::Jpeg, scans, limit });
    }
    Ok(())
}

/// JPEG decoder that has read the header.
pub(super) struct JpegDecoder<'a> {
    decoder: Decoder<Cursor<&'a [u8]>>,
    info: ImageInfo,
    bytes: &'a [u8],
}

impl<'a> JpegDecoder<'a> {
    /// Reads the header.
    pub(super) fn new(bytes: &'a [u8]) -> ImageResult<Self> {
        let mut decoder = Decoder::new(Cursor::new(bytes));
        decoder.read_info().map_err(|e| to_image_error(&e))?;
        let info = decoder.info().ok_or_else(|| decoding_error("the file has no frame"))?;
        Ok(Self { decoder, info, bytes })
    }
}

impl ImageDecoder for JpegDecoder<'_> {
    fn dimensions(&self) -> (u32, u32) {
        (self.info.width.into(), self.info.height.into())
    }

    fn color_type(&self) -> ColorType {
        match self.info.pixel_format {
            PixelFormat::L8 => ColorType::L8,
            PixelFormat::L16 => ColorType::L16,
            PixelFormat::RGB24 | PixelFormat::CMYK32 => ColorType::Rgb8,
        }
    }

    fn exif_metadata(&mut self) -> ImageResult<Option<Vec<u8>>> {
        Ok(self.decoder.exif_data().map(<[u8]>::to_vec))
    }

    fn read_image(mut self, buffer: &mut [u8]) -> ImageResult<()> {
        self.decoder.set_color_transform(segments::colour_space(self.bytes));
        let pixels = self.decoder.decode().map_err(|e| to_image_error(&e))?;
        let pixels = match self.info.pixel_format {
            PixelFormat::CMYK32 => cmyk_to_rgb(&pixels),
            _ => pixels,
        };
        if pixels.len() != buffer.len() {
            let kind = LimitErrorKind::DimensionError;
            return Err(ImageError::Limits(LimitError::from_kind(kind)));
        }
        buffer.copy_from_slice(&pixels);
        Ok(())
    }

    fn read_image_boxed(self: Box<Self>, buffer: &mut [u8]) -> ImageResult<()> {
        (*self).read_image(buffer)
    }
}

/// Converts CMYK to RGB like Pillow (`cmyk2rgb`, Convert.c).
fn cmyk_to_rgb(cmyk: &[u8]) -> Vec<u8> {
    let (pixels, _) = cmyk.as_chunks::<4>();
    let mut rgb = Vec::with_capacity(pixels.len() * 3);
    for [c, m, y, k] in pixels {
        let white = 255 - k;
        rgb.extend([c, m, y].map(|ink| white - multiply_u8(*ink, white)));
    }
    rgb
}

/// Returns `a · b / 255`, rounded; at most `b`.
fn multiply_u8(a: u8, b: u8) -> u8 {
    let product = u32::from(a) * u32::from(b) + 128;
    (((product >> 8) + product) >> 8) as u8
}

fn decoding_error(problem: &str) -> ImageError {
    ImageError::Decoding(DecodingError::new(ImageFormat::Jpeg.into(), problem))
}

fn to_image_error(error: &Error) -> ImageError {
    match error {
        Error::Unsupported(feature) => {
            let hint = ImageFormatHint::Exact(ImageFormat::Jpeg);
            let kind = UnsupportedErrorKind::GenericFeature(format!("{feature:?}"));
            ImageError::Unsupported(UnsupportedError::from_format_and_kind(hint, kind))
        }
        error => decoding_error(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cmyk_is_converted_like_pillow() {
        let convert = |cmyk: [u8; 4]| cmyk_to_rgb(&cmyk);
        assert_eq!(convert([0, 0, 0, 0]), [255, 255, 255]);
        assert_eq!(convert([0, 0, 0, 255]), [0, 0, 0]);
        assert_eq!(convert([255, 0, 128, 0]), [0, 255, 127]);
        // White is 255 − 55 = 200; red is 200 − 100 · 200 / 255 ≈ 200 − 78.4.
        assert_eq!(convert([100, 0, 255, 55]), [122, 200, 0]);
        for ink in 0..=255 {
            for white in 0..=255 {
                let exact = (f64::from(ink) * f64::from(white) / 255.).round();
                assert!((f64::from(multiply_u8(ink, white)) - exact).abs() < 0.5);
            }
        }
    }
}
