//! The canvas of a drawing.

use crate::data::phantoms::scene::SIDE;

/// Pixels in a row, as an index.
pub(super) const N: usize = SIDE as usize;

/// Colours before exposure, 0 to 255.
pub(super) type Canvas = Vec<[f32; 3]>;

/// 0 below zero, 1 above `width`, a straight line between.
pub(super) fn ramp(value: f32, width: f32) -> f32 {
    (value / width).clamp(0.0, 1.0)
}
