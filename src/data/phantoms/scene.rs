//! Scene of a phantom: image modality, lesions and geometry.

use crate::data::phantoms::lesion_layout;
use crate::data::phantoms::random_choice::{RandomChoice, dice};

/// Side length of a phantom image in pixels.
pub const SIDE: u32 = 128;

/// Image modality that a phantom imitates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PhantomKind {
    /// An axial slice: a bright ring around grey tissue.
    Ct,
    /// A brain-like slice with ventricles on a dark ground.
    Mri,
    /// Two dark lungs on both sides of a bright mediastinum.
    Radiograph,
    /// Pink tissue with many small nuclei.
    Histology,
}

impl PhantomKind {
    /// All modalities, in the order of their class indices.
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

/// Side of the lesions in the image (left is the left of the image).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LesionSide {
    /// All in the left half.
    Left,
    /// All in the right half.
    Right,
    /// At least one in each half.
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
    /// A radius of 4 to 5 pixels.
    Small,
    /// A radius of 9 to 10 pixels.
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

/// Tone of all lesions of a scene relative to the surrounding tissue.
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

/// A lesion, in image pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lesion {
    /// Horizontal position of the centre, from the left edge.
    pub x: f32,
    /// Vertical position of the centre, from the upper edge.
    pub y: f32,
    /// Mean radius.
    pub radius: f32,
    /// Ratio of horizontal to vertical half-axis, near 1.
    pub stretch: f32,
}

/// Geometry and exposure of the body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BodyFrame {
    /// Centre of the body in pixels.
    pub(crate) centre: (f32, f32),
    /// Half-axes of the body in pixels.
    pub(crate) axes: (f32, f32),
    /// Cosine and sine of the rotation.
    pub(crate) turn: (f32, f32),
    /// Factor of all grey values.
    pub(crate) gain: f32,
    /// Offset of all grey values.
    pub(crate) lift: f32,
    /// Seed of texture and noise.
    pub(crate) grain: u64,
}

/// Content of a phantom image.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Image modality.
    pub kind: PhantomKind,
    /// Zero to three lesions that do not overlap.
    pub lesions: Vec<Lesion>,
    /// Side of the lesions; `None` without lesions.
    pub side: Option<LesionSide>,
    /// Size of the lesions; `None` without lesions.
    pub size: Option<LesionSize>,
    /// Tone of the lesions; `None` without lesions.
    pub tone: Option<LesionTone>,
    pub(crate) frame: BodyFrame,
}

/// A scene as class indices, for training an image encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attributes {
    /// Index in [`PhantomKind::ALL`].
    pub kind: usize,
    /// Number of lesions.
    pub count: usize,
    /// 0 without lesions, 1 left, 2 right, 3 both.
    pub side: usize,
    /// 0 without lesions, 1 small, 2 large.
    pub size: usize,
    /// 0 without lesions, 1 bright, 2 dark.
    pub tone: usize,
}

impl Attributes {
    /// Number of classes of `kind`.
    pub const KINDS: usize = 4;
    /// Number of classes of `count`.
    pub const COUNTS: usize = 4;
    /// Number of classes of `side`.
    pub const SIDES: usize = 4;
    /// Number of classes of `size`.
    pub const SIZES: usize = 3;
    /// Number of classes of `tone`.
    pub const TONES: usize = 3;
    /// Numbers of classes, in the order of [`Attributes::classes`].
    pub const CLASSES: [usize; 5] = [
        Self::KINDS,
        Self::COUNTS,
        Self::SIDES,
        Self::SIZES,
        Self::TONES,
    ];

    /// Returns the five class indices: kind, count, side, size, tone.
    pub fn classes(&self) -> [usize; 5] {
        [self.kind, self.count, self.side, self.size, self.tone]
    }
}

impl Scene {
    /// Returns the number of lesions, 0 to 3.
    pub fn count(&self) -> usize {
        self.lesions.len()
    }

    /// Returns the lesion map of an `n·n` patch grid, row by row: 0 no lesion, 1 part of a lesion,
    /// 2 centre of a lesion.
    pub fn marks(&self, n: usize) -> Vec<usize> {
        let step = SIDE as f32 / n as f32;
        let mark = |row: usize, column: usize| {
            let (left, top) = (column as f32 * step, row as f32 * step);
            let reach = |lesion: &Lesion| {
                let dx = lesion.x - lesion.x.clamp(left, left + step);
                let dy = lesion.y - lesion.y.clamp(top, top + step);
                match dx * dx + dy * dy {
                    0.0 => 2,
                    // A rim narrower than about a third of the radius does not count.
                    d if d.sqrt() < lesion.radius * 0.7 => 1,
                    _ => 0,
                }
            };
            self.lesions.iter().map(reach).max().unwrap_or(0)
        };
        (0..n * n).map(|i| mark(i / n, i % n)).collect()
    }

    /// Returns the scene as class indices.
    pub fn attributes(&self) -> Attributes {
        Attributes {
            kind: PhantomKind::ALL
                .iter()
                .position(|k| *k == self.kind)
                .unwrap_or(0),
            count: self.count(),
            side: self.side.map_or(0, |side| match side {
                LesionSide::Left => 1,
                LesionSide::Right => 2,
                LesionSide::Both => 3,
            }),
            size: self
                .size
                .map_or(0, |size| if size == LesionSize::Small { 1 } else { 2 }),
            tone: self
                .tone
                .map_or(0, |tone| if tone == LesionTone::Bright { 1 } else { 2 }),
        }
    }
}

/// Generates the scene of phantom `index` of a seed.
pub fn scene(seed: u64, index: u64) -> Scene {
    let mut rng = dice(seed, index, u64::from_le_bytes(*b"scene\0\0\0"));
    let kind = rng.pick(&PhantomKind::ALL).unwrap_or(PhantomKind::Ct);
    let count = if rng.chance(0.15) {
        0
    } else {
        1 + rng.below(3)
    };
    let frame = frame(kind, &mut rng);
    if count == 0 {
        return Scene {
            kind,
            lesions: Vec::new(),
            side: None,
            size: None,
            tone: None,
            frame,
        };
    }
    let side = match rng.below(if count > 1 { 3 } else { 2 }) {
        0 => LesionSide::Left,
        1 => LesionSide::Right,
        _ => LesionSide::Both,
    };
    let size = if rng.chance(0.5) {
        LesionSize::Small
    } else {
        LesionSize::Large
    };
    let tone = if rng.chance(0.5) {
        LesionTone::Bright
    } else {
        LesionTone::Dark
    };
    let lesions = lesion_layout::lesions(
        &lesion_layout::LesionLayout {
            kind,
            frame,
            count,
            side,
            size,
        },
        &mut rng,
    );
    Scene {
        kind,
        lesions,
        side: Some(side),
        size: Some(size),
        tone: Some(tone),
        frame,
    }
}

fn frame(kind: PhantomKind, rng: &mut impl RandomChoice) -> BodyFrame {
    let (axes, tilt) = match kind {
        PhantomKind::Ct => ((rng.between(55.0, 60.0), rng.between(46.0, 53.0)), 0.10),
        PhantomKind::Mri => ((rng.between(49.0, 54.0), rng.between(55.0, 60.0)), 0.08),
        PhantomKind::Radiograph => ((rng.between(58.0, 63.0), rng.between(56.0, 62.0)), 0.03),
        PhantomKind::Histology => ((64.0, 64.0), 0.5),
    };
    // A rational parametrisation of the circle avoids `sin`, whose last digit depends on the platform.
    let t = rng.between(-tilt, tilt);
    let norm = 1.0 + t * t;
    let wander = 2.5;
    BodyFrame {
        centre: (
            64.0 + rng.between(-wander, wander),
            64.0 + rng.between(-wander, wander),
        ),
        axes,
        turn: ((1.0 - t * t) / norm, 2.0 * t / norm),
        gain: rng.between(0.9, 1.08),
        lift: rng.between(-6.0, 8.0),
        grain: rng.next_u64(),
    }
}
