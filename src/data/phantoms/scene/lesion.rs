//! Lesions of a phantom, and the image types they appear in.

/// Image modality that a phantom imitates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PhantomKind {
    /// Axial slice: a bright ring around grey tissue.
    Ct,
    /// Brain-like slice with ventricles on a dark background.
    Mri,
    /// Two dark lungs and a bright mediastinum between them.
    Radiograph,
    /// Pink tissue with many small nuclei.
    Histology,
}

impl PhantomKind {
    /// The four modalities, in the order of their class indices.
    pub const ALL: [Self; 4] = [Self::Ct, Self::Mri, Self::Radiograph, Self::Histology];

    /// Returns the name in `meta` and in messages.
    pub fn key(self) -> &'static str {
        match self {
            Self::Ct => "ct",
            Self::Mri => "mri",
            Self::Radiograph => "radiograph",
            Self::Histology => "histology",
        }
    }
}

/// Side of the lesions of a scene. Left is the left side of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LesionSide {
    /// All lesions are in the left half.
    Left,
    /// All lesions are in the right half.
    Right,
    /// Each half has at least one lesion.
    Both,
}

impl LesionSide {
    /// Returns the name in `meta`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
            Self::Both => "both",
        }
    }
}

/// Size of all lesions of a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LesionSize {
    /// Radius of 4 to 5 pixels.
    Small,
    /// Radius of 9 to 10 pixels.
    Large,
}

impl LesionSize {
    /// Returns the name in `meta`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Large => "large",
        }
    }
}

/// Tone of all lesions of a scene, relative to the tissue around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LesionTone {
    /// Brighter than the tissue.
    Bright,
    /// Darker than the tissue.
    Dark,
}

impl LesionTone {
    /// Returns the name in `meta`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Bright => "bright",
            Self::Dark => "dark",
        }
    }
}

/// A lesion. Positions and radius are in pixels of the image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lesion {
    /// Distance of the centre from the left edge.
    pub x: f32,
    /// Distance of the centre from the upper edge.
    pub y: f32,
    /// Mean radius.
    pub radius: f32,
    /// Ratio of the horizontal to the vertical half-axis, near 1.
    pub stretch: f32,
}
