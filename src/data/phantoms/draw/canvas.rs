//! The canvas of a drawing.

use crate::data::phantoms::scene::SIDE;

/// Pixels in a row, as an index.
pub(super) const WIDTH: usize = SIDE as usize;

/// Colours before exposure, 0 to 255.
pub(super) type Canvas = Vec<[f32; 3]>;

/// Returns a linear ramp: 0 below zero, 1 above `width`.
pub(super) fn ramp(value: f32, width: f32) -> f32 {
    (value / width).clamp(0.0, 1.0)
}
