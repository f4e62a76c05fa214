//! Draws a scene: tissue of the modality, lesions, exposure and noise.
//!
//! The code uses only additions, multiplications, divisions and square roots. They round equally on
//! every platform, so equal scenes give equal bytes.

mod canvas;
mod histology;
mod slice;
mod texture;

use canvas::{Canvas, WIDTH, ramp};
use image::RgbImage;

use super::scene::{SIDE, Scene};
use crate::data::phantoms::scene::lesion::{Lesion, LesionTone, PhantomKind};
use texture::{Noise, Texture};

/// Draws a scene as a 128×128 image.
pub fn draw(scene: &Scene) -> RgbImage {
    let mut noise = Noise::new(scene.frame.noise_seed);
    let mut canvas = match scene.kind {
        PhantomKind::Ct => slice::draw_ct(&scene.frame, &mut noise),
        PhantomKind::Mri => slice::draw_mri(&scene.frame, &mut noise),
        PhantomKind::Radiograph => slice::draw_radiograph(&scene.frame, &mut noise),
        PhantomKind::Histology => histology::draw_tissue(scene, &mut noise),
    };
    let edge = Texture::new(&mut noise, 5);
    for lesion in &scene.lesions {
        let colour = lesion_colour(scene, &mut noise);
        draw_lesion(&mut canvas, lesion, colour, &edge);
    }
    apply_exposure(scene, &canvas, &mut noise)
}

/// Returns the colour of a lesion.
fn lesion_colour(scene: &Scene, noise: &mut Noise) -> [f32; 3] {
    let bright = scene.tone == Some(LesionTone::Bright);
    if scene.kind == PhantomKind::Histology {
        let shift = noise.symmetric(8.0);
        return if bright {
            [250.0, 246.0 + shift, 222.0 + shift]
        } else {
            [66.0 + shift, 26.0 + shift, 112.0 + shift]
        };
    }
    let grey = if bright { 226.0 } else { 20.0 } + noise.symmetric(9.0);
    [grey; 3]
}

/// Draws a lesion over the tissue, with a soft and slightly uneven edge.
fn draw_lesion(canvas: &mut Canvas, lesion: &Lesion, colour: [f32; 3], edge: &Texture) {
    let root = lesion.stretch.sqrt();
    let (a, b) = (lesion.radius * root, lesion.radius / root);
    let reach = lesion.radius * 1.2 + 2.0;
    let low = |c: f32| (c - reach).max(0.0) as usize;
    let high = |c: f32| ((c + reach) as usize + 1).min(WIDTH);
    for y in low(lesion.y)..high(lesion.y) {
        for x in low(lesion.x)..high(lesion.x) {
            let (dx, dy) = ((x as f32 - lesion.x) / a, (y as f32 - lesion.y) / b);
            let wobble = 1.0 + 0.06 * edge.value_at(x as f32, y as f32);
            let depth = (wobble - (dx * dx + dy * dy).sqrt()) * lesion.radius;
            let cover = ramp(depth + 0.6, 1.2);
            if let Some(pixel) = canvas.get_mut(y * WIDTH + x) {
                for (value, target) in pixel.iter_mut().zip(colour) {
                    *value += (target - *value) * cover;
                }
            }
        }
    }
}

/// Applies exposure and noise and rounds to bytes.
fn apply_exposure(scene: &Scene, canvas: &Canvas, noise: &mut Noise) -> RgbImage {
    let (gain, lift) = (scene.frame.gain, scene.frame.brightness_offset);
    let colour = scene.kind == PhantomKind::Histology;
    // Colour slides have even lighting and less noise than grey images.
    let (gain, lift, grain) = if colour { (1.0, lift * 0.7, 5.0) } else { (gain, lift, 8.0) };
    let mut bytes = Vec::with_capacity(WIDTH * WIDTH * 3);
    for pixel in canvas {
        let speck = noise.symmetric(grain) + noise.symmetric(grain);
        for value in pixel {
            bytes.push((value * gain + lift + speck + 0.5).clamp(0.0, 255.0) as u8);
        }
    }
    RgbImage::from_raw(SIDE, SIDE, bytes).unwrap_or_else(|| RgbImage::new(SIDE, SIDE))
}
