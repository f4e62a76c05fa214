//! JPEG files, decoded as libjpeg does it as far as a library in Rust can: halved colour is made whole by the
//! same filter, and four inks become RGB by Pillow's formula.

mod segments;

use std::io::Cursor;

use image::error::{
    DecodingError, ImageFormatHint, LimitError, LimitErrorKind, UnsupportedError,
    UnsupportedErrorKind,
};
use image::{ColorType, ImageDecoder, ImageError, ImageFormat, ImageResult};
use jpeg_decoder::{Decoder, Error, ImageInfo, PixelFormat};

pub(super) use segments::is_whole;

/// A decoder whose header has been read.
pub(super) struct JpegDecoder<'a> {
    decoder: Decoder<Cursor<&'a [u8]>>,
    info: ImageInfo,
    bytes: &'a [u8],
}

impl<'a> JpegDecoder<'a> {
    /// Reads the header.
    pub(super) fn new(bytes: &'a [u8]) -> ImageResult<Self> {
        let mut decoder = Decoder::new(Cursor::new(bytes));
        decoder.read_info().map_err(|e| error(&e))?;
        let info = decoder.info().ok_or_else(|| damaged("it has no frame"))?;
        Ok(Self {
            decoder,
            info,
            bytes,
        })
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
        self.decoder
            .set_color_transform(segments::colours(self.bytes));
        let pixels = self.decoder.decode().map_err(|e| error(&e))?;
        let pixels = match self.info.pixel_format {
            PixelFormat::CMYK32 => rgb_of_inks(&pixels),
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

/// Cyan, magenta, yellow and black to red, green and blue, as Pillow does it (`cmyk2rgb`, Convert.c).
fn rgb_of_inks(inks: &[u8]) -> Vec<u8> {
    let (pixels, _) = inks.as_chunks::<4>();
    let mut rgb = Vec::with_capacity(pixels.len() * 3);
    for [c, m, y, k] in pixels {
        let light = 255 - k;
        rgb.extend([c, m, y].map(|ink| light - scaled(*ink, light)));
    }
    rgb
}

/// `a · b / 255`, rounded; never more than `b`.
fn scaled(a: u8, b: u8) -> u8 {
    let product = u32::from(a) * u32::from(b) + 128;
    (((product >> 8) + product) >> 8) as u8
}

fn damaged(what: &str) -> ImageError {
    ImageError::Decoding(DecodingError::new(ImageFormat::Jpeg.into(), what))
}

fn error(error: &Error) -> ImageError {
    match error {
        Error::Unsupported(feature) => {
            let hint = ImageFormatHint::Exact(ImageFormat::Jpeg);
            let kind = UnsupportedErrorKind::GenericFeature(format!("{feature:?}"));
            ImageError::Unsupported(UnsupportedError::from_format_and_kind(hint, kind))
        }
        error => damaged(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inks_become_light() {
        let of = |inks: [u8; 4]| rgb_of_inks(&inks);
        assert_eq!(of([0, 0, 0, 0]), [255, 255, 255]);
        assert_eq!(of([0, 0, 0, 255]), [0, 0, 0]);
        assert_eq!(of([255, 0, 128, 0]), [0, 255, 127]);
        // 255 − 55 is 200; of it 100 · 200 / 255 ≈ 78.4 is taken.
        assert_eq!(of([100, 0, 255, 55]), [122, 200, 0]);
        for ink in 0..=255 {
            for light in 0..=255 {
                let exact = (f64::from(ink) * f64::from(light) / 255.).round();
                assert!((f64::from(scaled(ink, light)) - exact).abs() < 0.5);
            }
        }
    }
}
