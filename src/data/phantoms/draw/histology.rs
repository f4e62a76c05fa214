//! Histology: pink tissue with many small nuclei outside the lesions.

use super::canvas::{Canvas, WIDTH, ramp};
use super::texture::{Noise, Texture};
use crate::data::phantoms::scene::Scene;

/// Lightest eosin pink of the tissue.
const PALE: [f32; 3] = [228.0, 176.0, 204.0];
/// Darkest eosin pink of the tissue.
const DEEP: [f32; 3] = [204.0, 130.0, 176.0];
/// Colour of a nucleus.
const NUCLEUS: [f32; 3] = [132.0, 78.0, 156.0];

/// Draws the tissue of a slide.
pub(super) fn draw_tissue(scene: &Scene, noise: &mut Noise) -> Canvas {
    let (broad, fibre) = (Texture::new(noise, 16), Texture::new(noise, 4));
    let (c, s) = scene.frame.rotation;
    let broad = broad.values();
    let mut canvas: Canvas = broad
        .into_iter()
        .enumerate()
        .map(|(i, broad)| {
            let (x, y) = ((i % WIDTH) as f32, (i / WIDTH) as f32);
            // Fibres: fine texture, stretched along one direction.
            let along = ((x * c + y * s) * 0.35 + 40.0, (y * c - x * s) * 0.9 + 40.0);
            let mix = 0.5 + 0.25 * broad + 0.3 * fibre.value_at(along.0, along.1);
            let mix = mix.clamp(0.0, 1.0);
            let mut colour = PALE;
            for (value, deep) in colour.iter_mut().zip(DEEP) {
                *value += (deep - *value) * mix;
            }
            colour
        })
        .collect();
    draw_nuclei(scene, &mut canvas, noise);
    canvas
}

/// Draws one nucleus in most cells of a grid, so that nuclei do not merge into a shape like a
/// lesion.
fn draw_nuclei(scene: &Scene, canvas: &mut Canvas, noise: &mut Noise) {
    let (cell, margin) = (noise.between(8.0, 10.0), 2.0);
    let cells = (WIDTH as f32 / cell) as usize + 1;
    for i in 0..cells * cells {
        let (column, row) = ((i % cells) as f32 * cell, (i / cells) as f32 * cell);
        let x = column + noise.between(margin, cell - margin);
        let y = row + noise.between(margin, cell - margin);
        let radius = noise.between(1.0, 1.7);
        let clear = scene.lesions.iter().all(|lesion| {
            let (dx, dy) = (lesion.x - x, lesion.y - y);
            let room = lesion.radius * 1.15 + 3.0;
            dx * dx + dy * dy > room * room
        });
        if noise.symmetric(1.0) < 0.8 && clear {
            draw_nucleus(canvas, (x, y), radius);
        }
    }
}

fn draw_nucleus(canvas: &mut Canvas, (cx, cy): (f32, f32), radius: f32) {
    let low = |c: f32| (c - 3.0).max(0.0) as usize;
    let high = |c: f32| ((c + 4.0) as usize).min(WIDTH);
    for y in low(cy)..high(cy) {
        for x in low(cx)..high(cx) {
            let (dx, dy) = (x as f32 - cx, y as f32 - cy);
            let cover = ramp(radius - (dx * dx + dy * dy).sqrt() + 0.5, 1.0);
            if let Some(pixel) = canvas.get_mut(y * WIDTH + x) {
                for (value, target) in pixel.iter_mut().zip(NUCLEUS) {
                    *value += (target - *value) * cover;
                }
            }
        }
    }
}
