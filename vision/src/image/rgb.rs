//! Converts all pixel types to 8-bit RGB.

use image::DynamicImage;

/// The pixels, three bytes each. Alpha is dropped, as Pillow does: what is under a transparent pixel stays
/// visible. `None` for a kind of pixel that no decoder here yields.
pub(super) fn rgb(image: DynamicImage) -> Option<Vec<u8>> {
    let upper = |v: u16| (v >> 8) as u8;
    Some(match image {
        DynamicImage::ImageRgb8(image) => image.into_raw(),
        DynamicImage::ImageRgba8(image) => each(&image, |[r, g, b, _]| [r, g, b]),
        DynamicImage::ImageLuma8(image) => each(&image, |[v]| [v; 3]),
        DynamicImage::ImageLumaA8(image) => each(&image, |[v, _]| [v; 3]),
        DynamicImage::ImageLuma16(image) => {
            let shift = shift(image.iter());
            each(&image, |[v]| [(v >> shift) as u8; 3])
        }
        DynamicImage::ImageLumaA16(image) => {
            let shift = shift(image.iter().step_by(2));
            each(&image, |[v, _]| [(v >> shift) as u8; 3])
        }
        DynamicImage::ImageRgb16(image) => each(&image, |p: [u16; 3]| p.map(upper)),
        DynamicImage::ImageRgba16(image) => each(&image, |[r, g, b, _]| [r, g, b].map(upper)),
        DynamicImage::ImageRgb32F(image) => each(&image, |p: [f32; 3]| p.map(unit)),
        DynamicImage::ImageRgba32F(image) => each(&image, |[r, g, b, _]| [r, g, b].map(unit)),
        _ => return None,
    })
}

/// Turns every pixel of `N` samples into three bytes.
fn each<T: Copy, const N: usize>(samples: &[T], f: impl Fn([T; N]) -> [u8; 3]) -> Vec<u8> {
    let (pixels, _) = samples.as_chunks::<N>();
    let mut bytes = vec![0; pixels.len() * 3];
    for (byte, pixel) in bytes.chunks_exact_mut(3).zip(pixels) {
        byte.copy_from_slice(&f(*pixel));
    }
    bytes
}

/// How far to shift grey of 16 bits so that the upper eight of the bits in use remain. Scanners store 10 or
/// 12 bits in 16, which by the upper byte alone would be black; at most eight bits stay as they are.
fn shift<'a>(samples: impl Iterator<Item = &'a u16>) -> u32 {
    let used = samples.fold(0, |used, v| used | v);
    (u16::BITS - used.leading_zeros()).saturating_sub(8)
}

/// A number from 0 to 1 as a byte; whatever lies outside, NaN too, is held inside.
fn unit(v: f32) -> u8 {
    (v.clamp(0., 1.) * 255. + 0.5) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{ImageBuffer, Luma, LumaA, Rgb, Rgba};

    #[test]
    fn grey_of_16_bits_uses_the_bits_there_are() {
        let of = |data: Vec<u16>| {
            let image: ImageBuffer<Luma<u16>, _> = ImageBuffer::from_raw(2, 1, data).unwrap();
            let bytes = rgb(DynamicImage::ImageLuma16(image)).unwrap();
            (bytes[0], bytes[3])
        };
        assert_eq!(of(vec![65535, 256]), (255, 1));
        assert_eq!(of(vec![4095, 2048]), (255, 128));
        assert_eq!(of(vec![200, 3]), (200, 3));
        assert_eq!(of(vec![0, 0]), (0, 0));
    }

    #[test]
    fn alpha_is_dropped() {
        let image = ImageBuffer::from_pixel(1, 1, Rgba([1u8, 2, 3, 0]));
        assert_eq!(rgb(DynamicImage::ImageRgba8(image)).unwrap(), [1, 2, 3]);
        let image = ImageBuffer::from_pixel(1, 1, LumaA([9u8, 0]));
        assert_eq!(rgb(DynamicImage::ImageLumaA8(image)).unwrap(), [9, 9, 9]);
        let image = ImageBuffer::from_pixel(1, 1, Rgb([0u16, 255, 65535]));
        assert_eq!(rgb(DynamicImage::ImageRgb16(image)).unwrap(), [0, 0, 255]);
        let image = ImageBuffer::from_pixel(1, 1, Rgb([f32::NAN, 0.5, 7.]));
        assert_eq!(
            rgb(DynamicImage::ImageRgb32F(image)).unwrap(),
            [0, 128, 255]
        );
    }
}
