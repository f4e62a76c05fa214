//! Decodes the bytes of an image file to an upright RGB image.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use image::codecs::{bmp::BmpDecoder, png::PngDecoder, tiff::TiffDecoder, webp::WebPDecoder};
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder};

use super::decoded_image::{DecodedImage, ImageHeader};
use super::detect::detect_format;
use super::dicom::{self, DicomView};
use super::error::DecodeError;
use super::format::FileFormat;
use super::jpeg::{self, JpegDecoder};
use super::limits::ImageLimits;
use super::png;
use super::rgb::to_rgb8;
use super::tracked_reader::TrackedReader;

/// Decodes an image file. The format is detected from the content.
///
/// Decodes the first image of an animation or multi-page file, and the middle frame of a DICOM
/// object with the file's window.
pub fn decode(bytes: &[u8], limits: &ImageLimits) -> Result<DecodedImage, DecodeError> {
    decode_with_view(bytes, limits, &DicomView::default())
}

/// Decodes an image file like [`decode`], with the frame and window of `view` for DICOM objects.
pub fn decode_with_view(
    bytes: &[u8],
    limits: &ImageLimits,
    view: &DicomView,
) -> Result<DecodedImage, DecodeError> {
    if bytes.len() > limits.bytes {
        return Err(DecodeError::TooManyBytes { size: bytes.len(), limit: limits.bytes });
    }
    let format = detect_format(bytes)?;
    // A malicious file that makes a decoder panic must not end the run.
    catch_unwind(AssertUnwindSafe(|| decode_format(format, bytes, limits, view)))
        .unwrap_or_else(|_| Err(DecodeError::decoder_panic(format)))
}

fn decode_format(
    format: FileFormat,
    bytes: &[u8],
    limits: &ImageLimits,
    view: &DicomView,
) -> Result<DecodedImage, DecodeError> {
    let exhausted = Cell::new(false);
    let bytes = match format {
        FileFormat::Png => &png::without_extra_chunks(bytes),
        _ => bytes,
    };
    let input = TrackedReader::new(bytes, &exhausted);
    let image = match format {
        FileFormat::Jpeg if !jpeg::has_end_marker(bytes) => {
            return Err(DecodeError::Truncated { format });
        }
        FileFormat::Jpeg => JpegDecoder::new(bytes).map(|decoder| {
            let (width, height) = decoder.dimensions();
            jpeg::check_scan_work(bytes, u64::from(width) * u64::from(height))
                .map_err(DecodeFailure::Rejected)?;
            let image = decode_pixels(format, decoder, limits)?;
            if jpeg::is_data_missing(bytes) {
                return Err(DecodeFailure::Rejected(DecodeError::Truncated { format }));
            }
            Ok(image)
        }),
        FileFormat::Png => PngDecoder::with_limits(input, decoder_memory_limit(limits))
            .map(|decoder| decode_pixels(format, decoder, limits)),
        FileFormat::Bmp => {
            BmpDecoder::new(input).map(|decoder| decode_pixels(format, decoder, limits))
        }
        FileFormat::Tiff => {
            TiffDecoder::new(input).map(|decoder| decode_pixels(format, decoder, limits))
        }
        FileFormat::WebP => {
            WebPDecoder::new(input).map(|decoder| decode_pixels(format, decoder, limits))
        }
        FileFormat::Dicom => return dicom::decode(bytes, limits, view),
    };
    match image {
        Ok(Ok(image)) => Ok(image),
        Ok(Err(DecodeFailure::Rejected(error))) => Err(error),
        Ok(Err(DecodeFailure::Decoder(error))) | Err(error) => {
            Err(DecodeError::from_decoder(format, &error, exhausted.get()))
        }
    }
}

/// Error of [`decode_pixels`].
enum DecodeFailure {
    /// Error of a check in this module.
    Rejected(DecodeError),
    /// Error of a decoder.
    Decoder(image::ImageError),
}

impl From<image::ImageError> for DecodeFailure {
    fn from(error: image::ImageError) -> Self {
        Self::Decoder(error)
    }
}

/// Returns the memory limit of the decoders: 16 bytes per pixel, the size of the largest pixel
/// type.
fn decoder_memory_limit(limits: &ImageLimits) -> image::Limits {
    let mut memory_limit = image::Limits::no_limits();
    memory_limit.max_alloc = Some(limits.pixels.saturating_mul(16));
    memory_limit
}

/// Checks the size of the image, then decodes and orients its pixels.
fn decode_pixels(
    format: FileFormat,
    mut decoder: impl ImageDecoder,
    limits: &ImageLimits,
) -> Result<DecodedImage, DecodeFailure> {
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > limits.pixels {
        let limit = limits.pixels;
        return Err(DecodeFailure::Rejected(DecodeError::TooManyPixels {
            format,
            width,
            height,
            limit,
        }));
    }
    if width == 0 || height == 0 {
        let problem = format!("the image size is {width} x {height}");
        return Err(DecodeFailure::Rejected(DecodeError::Damaged { format, problem }));
    }
    decoder.set_limits(decoder_memory_limit(limits))?;
    // An image with an invalid orientation is still usable.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut image = DynamicImage::from_decoder(decoder)?;
    image.apply_orientation(orientation);
    let (upright_width, upright_height) = (image.width() as usize, image.height() as usize);
    let pixel_type = image.color();
    let Some(data) = to_rgb8(image) else {
        let problem = format!("pixels of type {pixel_type:?}");
        return Err(DecodeFailure::Rejected(DecodeError::UnsupportedVariant { format, problem }));
    };
    let header = ImageHeader {
        width: upright_width,
        height: upright_height,
        format,
        stored_size: (width as usize, height as usize),
        orientation: orientation.to_exif(),
        applied_view: None,
        is_ct: false,
    };
    DecodedImage::new(header, data).ok_or_else(|| {
        let problem = "it has too few pixels".to_owned();
        DecodeFailure::Rejected(DecodeError::Damaged { format, problem })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{ExtendedColorType, ImageEncoder, ImageFormat};
    use std::io::Cursor;

    /// Encodes a small image in every format except DICOM.
    fn encoded_files() -> Vec<(FileFormat, Vec<u8>)> {
        let image = image::RgbImage::from_fn(21, 13, |x, y| {
            image::Rgb([(x * 12) as u8, (y * 19) as u8, ((x * y) % 256) as u8])
        });
        [
            (FileFormat::Jpeg, ImageFormat::Jpeg),
            (FileFormat::Png, ImageFormat::Png),
            (FileFormat::Bmp, ImageFormat::Bmp),
            (FileFormat::Tiff, ImageFormat::Tiff),
            (FileFormat::WebP, ImageFormat::WebP),
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
    fn every_format_is_decoded() {
        for (format, file) in encoded_files() {
            let image = decode(&file, &ImageLimits::default()).unwrap();
            assert_eq!((image.width(), image.height()), (21, 13), "{format}");
            assert_eq!((image.format(), image.orientation()), (format, 1));
            assert_eq!(image.data().len(), 21 * 13 * 3);
            assert!(image.row(13).is_empty());
            let pixel = &image.row(2)[3 * 10..][..3];
            let differs = pixel.iter().zip([120u8, 38, 20]).any(|(a, b)| a.abs_diff(b) > 24);
            assert!(!differs, "{format} {pixel:?}");
        }
    }

    #[test]
    fn size_limits_are_enforced() {
        for (format, file) in encoded_files() {
            let byte_limit = ImageLimits { bytes: file.len() - 1, ..ImageLimits::default() };
            let error = decode(&file, &byte_limit).unwrap_err();
            assert_eq!(
                error,
                DecodeError::TooManyBytes { size: file.len(), limit: file.len() - 1 }
            );
            let pixel_limit = ImageLimits { pixels: 21 * 13 - 1, ..ImageLimits::default() };
            let error = decode(&file, &pixel_limit).unwrap_err();
            let expected = DecodeError::TooManyPixels { format, width: 21, height: 13, limit: 272 };
            assert_eq!(error, expected);
            assert!(error.to_string().contains("21 x 13 pixels"), "{error}");
        }
    }

    #[test]
    fn truncated_file_is_reported_as_truncated() {
        for (format, file) in encoded_files() {
            for length in [file.len() / 2, file.len() - file.len() / 8] {
                let error = decode(&file[..length], &ImageLimits::default()).unwrap_err();
                assert_eq!(error, DecodeError::Truncated { format }, "{length}/{}", file.len());
            }
        }
    }

    #[test]
    fn huge_size_in_header_is_rejected() {
        // A PNG header of 2³¹ − 1 pixels squared, without data.
        let (_, mut file) = encoded_files().swap_remove(1);
        file[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
        file.truncate(33);
        assert!(decode(&file, &ImageLimits::default()).is_err());
    }

    /// Appends the data of a PNG chunk with a colour profile that inflates to 64 MiB.
    fn png_with_large_profile(png: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        let zeros = vec![0; 1 << 20];
        for _ in 0..64 {
            std::io::Write::write_all(&mut encoder, &zeros).unwrap();
        }
        let data = [b"profile\0\0".as_slice(), &encoder.finish().unwrap()].concat();
        let mut crc = flate2::Crc::new();
        crc.update(b"iCCP");
        crc.update(&data);
        let length = u32::try_from(data.len()).unwrap().to_be_bytes();
        // The chunk follows the signature and the header chunk.
        [&png[..33], &length, b"iCCP", &data, &crc.sum().to_be_bytes(), &png[33..]].concat()
    }

    #[test]
    fn colour_profile_is_not_inflated() {
        let (_, png) = encoded_files().swap_remove(1);
        let file = png_with_large_profile(&png);
        let mut decoder = PngDecoder::new(Cursor::new(&file)).unwrap();
        assert_eq!(decoder.icc_profile().unwrap().unwrap().len(), 64 << 20);
        assert_eq!(*png::without_extra_chunks(&file), png);
        assert_eq!(decode(&file, &ImageLimits::default()).unwrap().data().len(), 21 * 13 * 3);
    }

    #[test]
    fn image_of_too_many_scans_is_rejected() {
        let (_, jpeg) = encoded_files().swap_remove(0);
        let start = jpeg.windows(2).position(|bytes| bytes == [0xff, 0xda]).unwrap();
        let scan = &jpeg[start..jpeg.len() - 2];
        let file = |scans: usize, side: u8| {
            let mut file = [&jpeg[..start], &scan.repeat(scans), &[0xff, 0xd9]].concat();
            let frame = file.windows(2).position(|bytes| bytes == [0xff, 0xc0]).unwrap();
            // Height and width as multiples of 256.
            file[frame + 5..frame + 9].copy_from_slice(&[side, 0, side, 0]);
            file
        };
        let scan_limit = |file: &[u8]| match decode(file, &ImageLimits::default()) {
            Err(DecodeError::TooManyScans { limit, .. }) => Some(limit),
            _ => None,
        };
        assert_eq!(scan_limit(&file(100, 32)), Some(17));
        assert_eq!(scan_limit(&file(100, 1)), None);
    }

    #[test]
    fn grey_of_16_bits_is_decoded() {
        let data: Vec<u8> = [0u16, 1000, 2000, 4095].iter().flat_map(|v| v.to_ne_bytes()).collect();
        let mut png = Vec::new();
        image::codecs::png::PngEncoder::new(&mut png)
            .write_image(&data, 2, 2, ExtendedColorType::L16)
            .unwrap();
        let image = decode(&png, &ImageLimits::default()).unwrap();
        assert_eq!(image.data(), [0, 0, 0, 62, 62, 62, 125, 125, 125, 255, 255, 255]);
    }

    #[test]
    fn corrupt_files_do_not_panic() {
        let mut state = 7u64;
        let mut next = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % n
        };
        let limits = ImageLimits { pixels: 1 << 20, ..ImageLimits::default() };
        let mut rejected = 0;
        for (_, file) in encoded_files() {
            for _ in 0..800 {
                let mut file = file.clone();
                for _ in 0..=next(6) {
                    let position = next(file.len());
                    match next(4) {
                        0 => file[position] = next(256) as u8,
                        1 => file[position] ^= 1 << next(8),
                        2 => file[position..].fill(0xff),
                        _ => file.truncate(position.max(1)),
                    }
                }
                rejected += usize::from(decode(&file, &limits).is_err());
            }
        }
        assert!(rejected > 800, "{rejected}");
    }
}
