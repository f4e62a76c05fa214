//! Bytes to an upright RGB image.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use image::codecs::{bmp::BmpDecoder, png::PngDecoder, tiff::TiffDecoder, webp::WebPDecoder};
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder};

use super::decoded_image::DecodedImage;
use super::detect::detect_format;
use super::dicom::{self, View};
use super::error::DecodeError;
use super::format::Format;
use super::jpeg::{self, JpegDecoder};
use super::limits::Limits;
use super::rgb::rgb;
use super::watched::Watched;

/// Decodes an image file. The format is found from its content; of animations and multi-page files the first
/// image is taken, of DICOM objects the middle frame through the file's own window.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<DecodedImage, DecodeError> {
    decode_view(bytes, limits, &View::default())
}

/// As [`decode`], with the frame and window of DICOM objects chosen by `view`.
pub fn decode_view(
    bytes: &[u8],
    limits: &Limits,
    view: &View,
) -> Result<DecodedImage, DecodeError> {
    if bytes.len() > limits.bytes {
        return Err(DecodeError::TooManyBytes {
            got: bytes.len(),
            limit: limits.bytes,
        });
    }
    let format = detect_format(bytes)?;
    // The decoders are fuzzed, and still a hostile file must not end a run of thousands.
    catch_unwind(AssertUnwindSafe(|| match format {
        Format::Dicom => dicom::decode(bytes, limits, view),
        _ => decode_as(format, bytes, limits),
    }))
    .unwrap_or_else(|_| Err(DecodeError::broken_decoder(format)))
}

fn decode_as(format: Format, bytes: &[u8], limits: &Limits) -> Result<DecodedImage, DecodeError> {
    let exhausted = Cell::new(false);
    let input = Watched::new(bytes, &exhausted);
    let image = match format {
        Format::Jpeg if !jpeg::is_whole(bytes) => return Err(DecodeError::Truncated { format }),
        Format::Jpeg => JpegDecoder::new(bytes).map(|decoder| finish(format, decoder, limits)),
        Format::Png => PngDecoder::with_limits(input, memory(limits))
            .map(|decoder| finish(format, decoder, limits)),
        Format::Bmp => BmpDecoder::new(input).map(|decoder| finish(format, decoder, limits)),
        Format::Tiff => TiffDecoder::new(input).map(|decoder| finish(format, decoder, limits)),
        Format::WebP => WebPDecoder::new(input).map(|decoder| finish(format, decoder, limits)),
        Format::Dicom => return dicom::decode(bytes, limits, &View::default()),
    };
    match image {
        Ok(Ok(image)) => Ok(image),
        Ok(Err(Failure::Ours(error))) => Err(error),
        Ok(Err(Failure::Decoder(error))) | Err(error) => {
            Err(DecodeError::from_decoder(format, &error, exhausted.get()))
        }
    }
}

/// Whose error it is.
enum Failure {
    Ours(DecodeError),
    Decoder(image::ImageError),
}

impl From<image::ImageError> for Failure {
    fn from(error: image::ImageError) -> Self {
        Self::Decoder(error)
    }
}

/// What the decoders may take for themselves: the widest pixel has 16 bytes.
fn memory(limits: &Limits) -> image::Limits {
    let mut memory = image::Limits::no_limits();
    memory.max_alloc = Some(limits.pixels.saturating_mul(16));
    memory
}

/// Decodes the pixels, once the size has been found to be allowed.
fn finish(
    format: Format,
    mut decoder: impl ImageDecoder,
    limits: &Limits,
) -> Result<DecodedImage, Failure> {
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > limits.pixels {
        let limit = limits.pixels;
        return Err(Failure::Ours(DecodeError::TooManyPixels {
            format,
            width,
            height,
            limit,
        }));
    }
    if width == 0 || height == 0 {
        let what = format!("its size is {width} x {height}");
        return Err(Failure::Ours(DecodeError::Damaged { format, what }));
    }
    decoder.set_limits(memory(limits))?;
    // A damaged orientation is no reason to refuse an image that is whole.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut image = DynamicImage::from_decoder(decoder)?;
    image.apply_orientation(orientation);
    let (upright_width, upright_height) = (image.width() as usize, image.height() as usize);
    let kind = image.color();
    let Some(data) = rgb(image) else {
        let what = format!("pixels of kind {kind:?}");
        return Err(Failure::Ours(DecodeError::Unsupported { format, what }));
    };
    Ok(DecodedImage {
        width: upright_width,
        height: upright_height,
        data,
        format,
        stored: (width as usize, height as usize),
        orientation: orientation.to_exif(),
        shown: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{ExtendedColorType, ImageEncoder, ImageFormat};
    use std::io::Cursor;

    /// A small picture in every format.
    fn files() -> Vec<(Format, Vec<u8>)> {
        let image = image::RgbImage::from_fn(21, 13, |x, y| {
            image::Rgb([(x * 12) as u8, (y * 19) as u8, ((x * y) % 256) as u8])
        });
        [
            (Format::Jpeg, ImageFormat::Jpeg),
            (Format::Png, ImageFormat::Png),
            (Format::Bmp, ImageFormat::Bmp),
            (Format::Tiff, ImageFormat::Tiff),
            (Format::WebP, ImageFormat::WebP),
        ]
        .into_iter()
        .map(|(format, encoder)| {
            let mut file = Cursor::new(Vec::new());
            image.write_to(&mut file, encoder).unwrap();
            (format, file.into_inner())
        })
        .collect()
    }

    #[test]
    fn every_format_is_read() {
        for (format, file) in files() {
            let image = decode(&file, &Limits::default()).unwrap();
            assert_eq!((image.width(), image.height()), (21, 13), "{format}");
            assert_eq!((image.format(), image.orientation()), (format, 1));
            assert_eq!(image.data().len(), 21 * 13 * 3);
            assert!(image.row(13).is_empty());
            let pixel = &image.row(2)[3 * 10..][..3];
            let far = pixel
                .iter()
                .zip([120u8, 38, 20])
                .any(|(a, b)| a.abs_diff(b) > 24);
            assert!(!far, "{format} {pixel:?}");
        }
    }

    #[test]
    fn limits_hold() {
        for (format, file) in files() {
            let bytes = Limits {
                bytes: file.len() - 1,
                ..Limits::default()
            };
            let error = decode(&file, &bytes).unwrap_err();
            assert_eq!(
                error,
                DecodeError::TooManyBytes {
                    got: file.len(),
                    limit: file.len() - 1
                }
            );
            let pixels = Limits {
                pixels: 21 * 13 - 1,
                ..Limits::default()
            };
            let error = decode(&file, &pixels).unwrap_err();
            let expected = DecodeError::TooManyPixels {
                format,
                width: 21,
                height: 13,
                limit: 272,
            };
            assert_eq!(error, expected);
            assert!(error.to_string().contains("21 x 13 pixels"), "{error}");
        }
    }

    #[test]
    fn a_truncated_file_is_called_so() {
        for (format, file) in files() {
            for keep in [file.len() / 2, file.len() - file.len() / 8] {
                let error = decode(&file[..keep], &Limits::default()).unwrap_err();
                assert_eq!(
                    error,
                    DecodeError::Truncated { format },
                    "{keep}/{}",
                    file.len()
                );
            }
        }
    }

    #[test]
    fn a_stated_size_takes_no_memory() {
        // A PNG header of 2³¹ − 1 pixels squared, without data.
        let (_, mut file) = files().swap_remove(1);
        file[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
        file.truncate(33);
        assert!(decode(&file, &Limits::default()).is_err());
    }

    #[test]
    fn depth_of_16_bits_is_read() {
        let data: Vec<u8> = [0u16, 1000, 2000, 4095]
            .iter()
            .flat_map(|v| v.to_ne_bytes())
            .collect();
        let mut png = Vec::new();
        image::codecs::png::PngEncoder::new(&mut png)
            .write_image(&data, 2, 2, ExtendedColorType::L16)
            .unwrap();
        let image = decode(&png, &Limits::default()).unwrap();
        assert_eq!(
            image.data(),
            [0, 0, 0, 62, 62, 62, 125, 125, 125, 255, 255, 255]
        );
    }

    #[test]
    fn hostile_bytes_never_panic() {
        let mut state = 7u64;
        let mut next = |n: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % n
        };
        let limits = Limits {
            pixels: 1 << 20,
            ..Limits::default()
        };
        let mut refused = 0;
        for (_, file) in files() {
            for _ in 0..800 {
                let mut file = file.clone();
                for _ in 0..=next(6) {
                    let at = next(file.len());
                    match next(4) {
                        0 => file[at] = next(256) as u8,
                        1 => file[at] ^= 1 << next(8),
                        2 => file[at..].fill(0xff),
                        _ => file.truncate(at.max(1)),
                    }
                }
                refused += usize::from(decode(&file, &limits).is_err());
            }
        }
        assert!(refused > 800, "{refused}");
    }
}
