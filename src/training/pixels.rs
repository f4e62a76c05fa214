//! Images as a model in training takes them: preprocessed, and slightly different each time.

use std::sync::Arc;

use image::RgbImage;
use image::imageops::{FilterType, resize};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::taught::Pixels;

/// The furthest an image is moved, in pixels of the model's input.
const SHIFT: i32 = 3;

/// The pixel values of an image: padded to a square, resized, scaled to -1..1.
pub fn pixels(image: &RgbImage, side: usize) -> Pixels {
    let (w, h) = image.dimensions();
    let square = if w == h {
        image.clone()
    } else {
        let longest = w.max(h);
        let mut square = RgbImage::from_pixel(longest, longest, image::Rgb([127, 127, 127]));
        let (x, y) = (i64::from((longest - w) / 2), i64::from((longest - h) / 2));
        image::imageops::replace(&mut square, image, x, y);
        square
    };
    let small = resize(&square, side as u32, side as u32, FilterType::CatmullRom);
    let plane = side * side;
    let mut values = vec![0.0; 3 * plane];
    for (i, pixel) in small.pixels().enumerate() {
        for (c, value) in pixel.0.iter().enumerate() {
            values[c * plane + i] = f32::from(*value) / 127.5 - 1.0;
        }
    }
    values.into()
}

/// The same image moved by a few pixels, its contrast and brightness a little changed. It is never
/// mirrored: left and right mean something.
pub fn jitter(pixels: &Pixels, side: usize, rng: &mut ChaCha8Rng) -> Pixels {
    let (dx, dy) = (rng.random_range(-SHIFT..=SHIFT), rng.random_range(-SHIFT..=SHIFT));
    let (gain, lift) = (rng.random_range(0.9..1.1f32), rng.random_range(-0.08..0.08f32));
    let last = side as i32 - 1;
    let plane = side * side;
    let moved = (0..3 * plane).map(|i| {
        let (c, y, x) = (i / plane, (i % plane) / side, i % side);
        let y = (y as i32 + dy).clamp(0, last) as usize;
        let x = (x as i32 + dx).clamp(0, last) as usize;
        pixels[c * plane + y * side + x] * gain + lift
    });
    Arc::from(moved.collect::<Vec<_>>())
}
