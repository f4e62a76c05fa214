//! Generated images: bright discs on a dark, noisy background.

use anyhow::Result;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder as _};

/// Size of the images in pixels.
const WIDTH: u32 = 1024;
const HEIGHT: u32 = 768;
/// Quality of the JPEG files.
const QUALITY: u8 = 90;

/// Returns the pixels (RGB) of an image.
fn pixels(seed: usize) -> Vec<u8> {
    let mut state = seed as u32 + 1;
    let mut values = Vec::with_capacity((WIDTH * HEIGHT * 3) as usize);
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (dx, dy) = (x as f32 - 400. - 20. * seed as f32, y as f32 - 380.);
            let body = 160. * (1. - (dx * dx + 1.6 * dy * dy).sqrt() / 420.).max(0.);
            let waves = 30. * ((x as f32 / 23.).sin() * (y as f32 / 31.).cos());
            let value = 30. + body + waves + (state >> 28) as f32;
            values.extend([value, value * 0.9, value * 0.8].map(|value| value as u8));
        }
    }
    values
}

/// Returns an image as a JPEG file.
pub(crate) fn jpeg(seed: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut bytes, QUALITY);
    encoder.write_image(&pixels(seed), WIDTH, HEIGHT, ExtendedColorType::Rgb8)?;
    Ok(bytes)
}

/// Returns an image as a PNG file.
pub(crate) fn png(seed: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let encoder = PngEncoder::new(&mut bytes);
    encoder.write_image(&pixels(seed), WIDTH, HEIGHT, ExtendedColorType::Rgb8)?;
    Ok(bytes)
}
