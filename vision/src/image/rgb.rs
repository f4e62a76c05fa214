//! Converts decoded images of all pixel types to 8-bit RGB.

use image::DynamicImage;

/// Returns the pixels, three bytes each; `None` for a pixel type that no decoder here returns.
///
/// Drops the alpha channel, as Pillow does: the colour of a transparent pixel stays visible.
pub(super) fn to_rgb8(image: DynamicImage) -> Option<Vec<u8>> {
    let upper_byte = |v: u16| (v >> 8) as u8;
    Some(match image {
        DynamicImage::ImageRgb8(image) => image.into_raw(),
        DynamicImage::ImageRgba8(image) => map_pixels(&image, |[r, g, b, _]| [r, g, b]),
        DynamicImage::ImageLuma8(image) => map_pixels(&image, |[v]| [v; 3]),
        DynamicImage::ImageLumaA8(image) => map_pixels(&image, |[v, _]| [v; 3]),
        DynamicImage::ImageLuma16(image) => {
            let shift = shift_to_upper_byte(image.iter());
            map_pixels(&image, |[v]| [(v >> shift) as u8; 3])
        }
        DynamicImage::ImageLumaA16(image) => {
            let shift = shift_to_upper_byte(image.iter().step_by(2));
            map_pixels(&image, |[v, _]| [(v >> shift) as u8; 3])
        }
        DynamicImage::ImageRgb16(image) => map_pixels(&image, |p: [u16; 3]| p.map(upper_byte)),
        DynamicImage::ImageRgba16(image) => {
            map_pixels(&image, |[r, g, b, _]| [r, g, b].map(upper_byte))
        }
        DynamicImage::ImageRgb32F(image) => map_pixels(&image, |p: [f32; 3]| p.map(unit_to_byte)),
        DynamicImage::ImageRgba32F(image) => {
            map_pixels(&image, |[r, g, b, _]| [r, g, b].map(unit_to_byte))
        }
        _ => return None,
    })
}

/// Converts every pixel of `N` samples to three bytes.
fn map_pixels<T: Copy, const N: usize>(
    samples: &[T],
    convert: impl Fn([T; N]) -> [u8; 3],
) -> Vec<u8> {
    let (pixels, _) = samples.as_chunks::<N>();
    let mut bytes = vec![0; pixels.len() * 3];
    for (rgb, pixel) in bytes.chunks_exact_mut(3).zip(pixels) {
        rgb.copy_from_slice(&convert(*pixel));
    }
    bytes
}

/// Returns the right shift that reduces 16-bit grey samples to the upper eight of their used bits.
///
/// Scanners store samples of 10 or 12 bits in 16 bits. The upper byte alone would be almost black.
/// Samples of at most eight bits are not shifted.
fn shift_to_upper_byte<'a>(samples: impl Iterator<Item = &'a u16>) -> u32 {
    let used_bits = samples.fold(0, |bits, sample| bits | sample);
    (u16::BITS - used_bits.leading_zeros()).saturating_sub(8)
}

/// Converts a number from 0 to 1 to a byte. Values outside are clamped; NaN becomes 0.
fn unit_to_byte(v: f32) -> u8 {
    (v.clamp(0., 1.) * 255. + 0.5) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{ImageBuffer, Luma, LumaA, Rgb, Rgba};

    #[test]
    fn grey_of_16_bits_keeps_the_upper_eight_used_bits() {
        let convert = |data: Vec<u16>| {
            let image: ImageBuffer<Luma<u16>, _> = ImageBuffer::from_raw(2, 1, data).unwrap();
            let bytes = to_rgb8(DynamicImage::ImageLuma16(image)).unwrap();
            (bytes[0], bytes[3])
        };
        assert_eq!(convert(vec![65535, 256]), (255, 1));
        assert_eq!(convert(vec![4095, 2048]), (255, 128));
        assert_eq!(convert(vec![200, 3]), (200, 3));
        assert_eq!(convert(vec![0, 0]), (0, 0));
    }

    #[test]
    fn alpha_is_dropped() {
        let image = ImageBuffer::from_pixel(1, 1, Rgba([1u8, 2, 3, 0]));
        assert_eq!(to_rgb8(DynamicImage::ImageRgba8(image)).unwrap(), [1, 2, 3]);
        let image = ImageBuffer::from_pixel(1, 1, LumaA([9u8, 0]));
        assert_eq!(to_rgb8(DynamicImage::ImageLumaA8(image)).unwrap(), [9, 9, 9]);
        let image = ImageBuffer::from_pixel(1, 1, Rgb([0u16, 255, 65535]));
        assert_eq!(to_rgb8(DynamicImage::ImageRgb16(image)).unwrap(), [0, 0, 255]);
        let image = ImageBuffer::from_pixel(1, 1, Rgb([f32::NAN, 0.5, 7.]));
        assert_eq!(to_rgb8(DynamicImage::ImageRgb32F(image)).unwrap(), [0, 128, 255]);
    }
}
