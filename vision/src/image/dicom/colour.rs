//! Converts colour samples of DICOM frames to 8-bit RGB.

use super::super::error::DecodeError;
use super::error::unsupported;
use super::header::{Header, Photometric, Sampling};

/// The pixels, three bytes each. What JPEG's decoder gives is red, green and blue already.
pub(super) fn rgb(header: &Header, samples: &[i32], jpeg: bool) -> Result<Vec<u8>, DecodeError> {
    let shift = header.bits_stored.saturating_sub(8);
    let byte = |v: i32| (v >> shift).clamp(0, 255) as u8;
    let bytes: Vec<u8> = if header.planar && !jpeg {
        let plane = samples.len() / 3;
        let at = |i: usize| samples.get(i).copied().map_or(0, byte);
        (0..plane)
            .flat_map(|i| [at(i), at(plane + i), at(2 * plane + i)])
            .collect()
    } else {
        samples.iter().copied().map(byte).collect()
    };
    match header.photometric {
        Photometric::Ybr(Sampling::Pairs | Sampling::Jpeg) if !jpeg => {
            Err(unsupported("its colours are subsampled without JPEG"))
        }
        Photometric::Ybr(_) if !jpeg => {
            let (pixels, _) = bytes.as_chunks::<3>();
            Ok(pixels.iter().flat_map(|pixel| from_ybr(*pixel)).collect())
        }
        _ => Ok(bytes),
    }
}

/// `YBR_FULL` to RGB (PS3.3 C.7.6.3.1.2).
fn from_ybr([y, b, r]: [u8; 3]) -> [u8; 3] {
    let (y, b, r) = (f64::from(y), f64::from(b) - 128.0, f64::from(r) - 128.0);
    let red = y + 1.402 * r;
    let green = y - 0.114 * 1.772 / 0.587 * b - 0.299 * 1.402 / 0.587 * r;
    let blue = y + 1.772 * b;
    [red, green, blue].map(|v| (v + 0.5).floor().clamp(0.0, 255.0) as u8)
}
