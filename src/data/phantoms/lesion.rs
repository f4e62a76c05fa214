//! Lesions of a phantom, and the image types they appear in.

/// The kind of image a phantom imitates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PhantomKind {
    /// An axial slice: a bright ring around grey tissue.
    Ct,
    /// A brain-like slice with ventricles on a dark ground.
    Mri,
    /// Two dark lungs beside a bright mediastinum.
    Radiograph,
    /// Pink tissue with many small nuclei.
    Histology,
}

impl PhantomKind {
    /// The four kinds, in the order of their class numbers.
    pub const ALL: [Self; 4] = [Self::Ct, Self::Mri, Self::Radiograph, Self::Histology];

    /// The name in `meta` and in messages.
    pub fn key(self) -> &'static str {
        match self {
            Self::Ct => "ct",
            Self::Mri => "mri",
            Self::Radiograph => "radiograph",
            Self::Histology => "histology",
        }
    }
}

/// Where the lesions of a scene lie, as seen in the image (left is the image's left).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LesionSide {
    /// All in the left half.
    Left,
    /// All in the right half.
    Right,
    /// At least one in either half.
    Both,
}

impl LesionSide {
    /// The name in `meta`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
            Self::Both => "both",
        }
    }
}

/// The size shared by the lesions of a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LesionSize {
    /// A radius of 4 to 5 pixels.
    Small,
    /// A radius of 9 to 10 pixels.
    Large,
}

impl LesionSize {
    /// The name in `meta`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Large => "large",
        }
    }
}

/// The tone shared by the lesions of a scene, against the tissue around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LesionTone {
    /// Brighter than the tissue.
    Bright,
    /// Darker than the tissue.
    Dark,
}

impl LesionTone {
    /// The name in `meta`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Bright => "bright",
            Self::Dark => "dark",
        }
    }
}

/// One lesion, in pixels of the image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lesion {
    /// Centre, from the left edge.
    pub x: f32,
    /// Centre, from the upper edge.
    pub y: f32,
    /// Mean radius.
    pub radius: f32,
    /// Horizontal against vertical half-axis, near 1.
    pub stretch: f32,
}
