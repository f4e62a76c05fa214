//! Position and shape of the body in a phantom.

/// Geometry and exposure of the body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BodyFrame {
    /// Centre of the body in pixels.
    pub(crate) centre: (f32, f32),
    /// Half-axes of the body in pixels.
    pub(crate) axes: (f32, f32),
    /// Cosine and sine of the rotation.
    pub(crate) rotation: (f32, f32),
    /// Factor of every grey value.
    pub(crate) gain: f32,
    /// Added to every grey value.
    pub(crate) brightness_offset: f32,
    /// Seed of texture and noise.
    pub(crate) noise_seed: u64,
}

/// The two lungs of a radiograph, in body coordinates.
pub(crate) struct Lungs {
    /// Distance of the centre of a lung from the midline.
    pub(crate) offset: f32,
    /// Half-axes.
    pub(crate) axes: (f32, f32),
}

impl BodyFrame {
    /// Converts a pixel position to body coordinates: pixels from the centre along the axes of the
    /// body.
    pub(crate) fn to_body_axes(self, x: f32, y: f32) -> (f32, f32) {
        let (dx, dy) = (x - self.centre.0, y - self.centre.1);
        let (c, s) = self.rotation;
        (dx * c + dy * s, dy * c - dx * s)
    }

    /// Returns the lungs of a radiograph with this frame.
    pub(crate) fn lungs(&self) -> Lungs {
        Lungs { offset: self.axes.0 * 0.49, axes: (self.axes.0 * 0.40, self.axes.1 * 0.80) }
    }
}
