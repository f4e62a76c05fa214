//! Converts colour samples of DICOM frames to 8-bit RGB.

use super::super::error::DecodeError;
use super::error::unsupported;
use super::pixel_header::{ChromaSampling, PhotometricInterpretation, PixelHeader};

/// Returns the pixels, three bytes each.
///
/// `is_jpeg`: the samples come from a JPEG decoder, which returns interleaved RGB.
pub(super) fn to_rgb8(
    header: &PixelHeader,
    samples: &[i32],
    is_jpeg: bool,
) -> Result<Vec<u8>, DecodeError> {
    let shift = header.bits_stored.saturating_sub(8);
    let byte = |v: i32| (v >> shift).clamp(0, 255) as u8;
    let bytes: Vec<u8> = if header.is_planar && !is_jpeg {
        let plane = samples.len() / 3;
        let byte_at = |i: usize| samples.get(i).copied().map_or(0, byte);
        (0..plane).flat_map(|i| [byte_at(i), byte_at(plane + i), byte_at(2 * plane + i)]).collect()
    } else {
        samples.iter().copied().map(byte).collect()
    };
    match header.photometric {
        PhotometricInterpretation::Ybr(ChromaSampling::HalfWidth | ChromaSampling::JpegOnly)
            if !is_jpeg =>
        {
            Err(unsupported("the colours are subsampled without JPEG compression"))
        }
        PhotometricInterpretation::Ybr(_) if !is_jpeg => {
            let (pixels, _) = bytes.as_chunks::<3>();
            Ok(pixels.iter().flat_map(|pixel| ybr_to_rgb(*pixel)).collect())
        }
        _ => Ok(bytes),
    }
}

/// Converts `YBR_FULL` to RGB (PS3.3 C.7.6.3.1.2).
fn ybr_to_rgb([y, cb, cr]: [u8; 3]) -> [u8; 3] {
    let (y, cb, cr) = (f64::from(y), f64::from(cb) - 128.0, f64::from(cr) - 128.0);
    let red = y + 1.402 * cr;
    let green = y - 0.114 * 1.772 / 0.587 * cb - 0.299 * 1.402 / 0.587 * cr;
    let blue = y + 1.772 * cb;
    [red, green, blue].map(|v| (v + 0.5).floor().clamp(0.0, 255.0) as u8)
}
