//! Grey images without lesions: CT, MRI and radiograph.

use super::canvas::{Canvas, WIDTH, ramp};
use super::texture::{Noise, Texture};
use crate::data::phantoms::scene::body_frame::BodyFrame;

/// Fills a canvas with the grey values of `shade`.
/// `shade` receives the pixel in body coordinates and the values of the two textures at the pixel.
fn fill_grey(
    frame: &BodyFrame,
    textures: [&Texture; 2],
    mut shade: impl FnMut((f32, f32), f32, f32) -> f32,
) -> Canvas {
    let [first, second] = textures.map(Texture::values);
    let values = first.into_iter().zip(second).enumerate();
    values
        .map(|(i, (a, b))| {
            [shade(frame.to_body_axes((i % WIDTH) as f32, (i / WIDTH) as f32), a, b); 3]
        })
        .collect()
}

/// Returns the distance in pixels from the body's edge; negative outside.
fn edge_distance(frame: &BodyFrame, u: f32, v: f32) -> f32 {
    let (p, q) = (u / frame.axes.0, v / frame.axes.1);
    (1.0 - (p * p + q * q).sqrt()) * frame.axes.0.min(frame.axes.1)
}

/// Draws an axial slice: a bright ring around slightly mottled tissue.
pub(super) fn draw_ct(frame: &BodyFrame, noise: &mut Noise) -> Canvas {
    let (organs, fine) = (Texture::new(noise, 22), Texture::new(noise, 6));
    let wall = noise.between(3.5, 5.5);
    let tissue = noise.between(112.0, 130.0);
    fill_grey(frame, [&organs, &fine], |(u, v), organ, grain| {
        let edge = edge_distance(frame, u, v);
        if edge < -0.5 {
            return 14.0;
        }
        let inner = tissue + 9.0 * organ + 4.0 * grain;
        let ring = 14.0 + (222.0 - 14.0) * ramp(edge + 0.5, 1.5);
        ring + (inner - ring) * ramp(edge - wall, 1.5)
    })
}

/// Draws a brain-like slice: thin skull, folded grey tissue, two narrow ventricles, dark
/// background.
pub(super) fn draw_mri(frame: &BodyFrame, noise: &mut Noise) -> Canvas {
    let (folds, bulk) = (Texture::new(noise, 7), Texture::new(noise, 20));
    let tissue = noise.between(116.0, 132.0);
    let ventricle_end = noise.between(13.0, 18.0);
    fill_grey(frame, [&folds, &bulk], |(u, v), fold, bulk| {
        let edge = edge_distance(frame, u, v);
        if edge < -0.5 {
            return 5.0;
        }
        let skull = 5.0 + 150.0 * ramp(edge + 0.5, 1.0) * (1.0 - ramp(edge - 1.5, 1.0));
        let fold = 1.0 - ramp(fold.abs(), 0.3);
        let rim = 1.0 - ramp(edge - 6.0, 16.0);
        let mut brain = tissue + 7.0 * bulk - fold * (6.0 + 16.0 * rim);
        // The ventricles curve away from the midline at both ends.
        let bend = 2.6 + 5.0 * (v / ventricle_end) * (v / ventricle_end);
        let depth = 2.2 - (u.abs() - bend).abs();
        brain += (62.0 - brain) * ramp(depth, 1.0) * ramp(ventricle_end - v.abs(), 2.0);
        // The fissure between the hemispheres.
        let fissure = ramp(1.2 - u.abs(), 1.0) * ramp(v.abs() - ventricle_end - 3.0, 2.0);
        brain += (70.0 - brain) * fissure;
        skull + (brain - skull) * ramp(edge - 4.0, 1.2)
    })
}

/// Draws a chest-like projection: dark lungs with faint ribs, and a bright mediastinum between
/// them.
pub(super) fn draw_radiograph(frame: &BodyFrame, noise: &mut Noise) -> Canvas {
    let (soft, haze) = (Texture::new(noise, 18), Texture::new(noise, 16));
    let lung = frame.lungs();
    let air = noise.between(84.0, 98.0);
    let period = noise.between(11.0, 14.0);
    fill_grey(frame, [&soft, &haze], |(u, v), soft, haze| {
        let body = 152.0 + 8.0 * soft - 0.25 * (v + 20.0).clamp(0.0, 30.0);
        let spine = 42.0 * ramp(frame.axes.0 * 0.11 - u.abs(), 6.0);
        let (p, q) = ((u.abs() - lung.offset) / lung.axes.0, v / lung.axes.1);
        let inside = (1.0 - (p * p + q * q).sqrt()) * lung.axes.0;
        let sag = v + 0.012 * (u.abs() - lung.offset) * (u.abs() - lung.offset);
        // The phase is always positive, so truncation removes the whole periods.
        let phase = (sag + 200.0) / period;
        let rib = ramp(0.5 - (phase - phase as i32 as f32 - 0.5).abs() * 2.0, 0.25);
        let dark = air + 5.0 * haze + 13.0 * rib;
        let flank = ramp(frame.axes.0 + 2.0 - u.abs(), 5.0);
        let value = 18.0 + (body + spine - 18.0) * flank;
        value + (dark - value) * ramp(inside + 0.8, 2.2)
    })
}
