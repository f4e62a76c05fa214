//! Position and shape of the body in a phantom.

/// Geometry and exposure of the body that is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BodyFrame {
    /// Centre of the body in pixels.
    pub(crate) centre: (f32, f32),
    /// Half-axes of the body in pixels.
    pub(crate) axes: (f32, f32),
    /// Cosine and sine of the rotation.
    pub(crate) turn: (f32, f32),
    /// Factor on every grey value.
    pub(crate) gain: f32,
    /// Added to every grey value.
    pub(crate) lift: f32,
    /// Seed of texture and noise.
    pub(crate) grain: u64,
}

/// The two lungs of a radiograph, in pixels of the body's own axes.
pub(crate) struct Lung {
    /// Distance of a lung's centre from the midline.
    pub(crate) offset: f32,
    /// Half-axes.
    pub(crate) axes: (f32, f32),
}

impl BodyFrame {
    /// A pixel in the body's own axes (pixels from its centre, turned upright).
    pub(crate) fn inside(&self, x: f32, y: f32) -> (f32, f32) {
        let (dx, dy) = (x - self.centre.0, y - self.centre.1);
        let (c, s) = self.turn;
        (dx * c + dy * s, dy * c - dx * s)
    }

    /// The lungs of a radiograph with this frame.
    pub(crate) fn lung(&self) -> Lung {
        Lung {
            offset: self.axes.0 * 0.49,
            axes: (self.axes.0 * 0.40, self.axes.1 * 0.80),
        }
    }
}
