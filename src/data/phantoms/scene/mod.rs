//! Scene of a phantom: image modality, lesions and geometry.

pub(crate) mod body_frame;
pub(crate) mod lesion;
pub(crate) mod lesion_layout;
pub(crate) mod scene_facts;

use crate::data::phantoms::random_choice::{RandomChoice, stream_rng};
use crate::data::phantoms::scene::body_frame::BodyFrame;
use crate::data::phantoms::scene::lesion::{
    Lesion, LesionSide, LesionSize, LesionTone, PhantomKind,
};

/// Side length of a phantom image in pixels.
pub const SIDE: u32 = 128;

/// Everything that is true of a phantom image.
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
    /// Geometry and exposure of the body.
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
    /// Numbers of classes, in the order of [`Attributes::class_indices`].
    pub const CLASSES: [usize; 5] =
        [Self::KINDS, Self::COUNTS, Self::SIDES, Self::SIZES, Self::TONES];

    /// Returns the five class indices: kind, count, side, size, tone.
    pub fn class_indices(&self) -> [usize; 5] {
        [self.kind, self.count, self.side, self.size, self.tone]
    }
}

impl Scene {
    /// Returns the number of lesions, 0 to 3.
    pub fn lesion_count(&self) -> usize {
        self.lesions.len()
    }

    /// Returns the lesion map of an `n·n` patch grid, row by row: 0 no lesion, 1 part of a lesion,
    /// 2 centre of a lesion.
    pub fn lesion_map(&self, n: usize) -> Vec<usize> {
        let step = SIDE as f32 / n as f32;
        let patch_class = |row: usize, column: usize| {
            let (left, top) = (column as f32 * step, row as f32 * step);
            let lesion_class = |lesion: &Lesion| {
                let dx = lesion.x - lesion.x.clamp(left, left + step);
                let dy = lesion.y - lesion.y.clamp(top, top + step);
                match dx * dx + dy * dy {
                    0.0 => 2,
                    // A rim narrower than about a third of the radius does not count.
                    d if d.sqrt() < lesion.radius * 0.7 => 1,
                    _ => 0,
                }
            };
            self.lesions.iter().map(lesion_class).max().unwrap_or(0)
        };
        (0..n * n).map(|i| patch_class(i / n, i % n)).collect()
    }

    /// Returns the scene as class indices.
    pub fn attributes(&self) -> Attributes {
        Attributes {
            kind: PhantomKind::ALL.iter().position(|k| *k == self.kind).unwrap_or(0),
            count: self.lesion_count(),
            side: self.side.map_or(0, |side| match side {
                LesionSide::Left => 1,
                LesionSide::Right => 2,
                LesionSide::Both => 3,
            }),
            size: self.size.map_or(0, |size| if size == LesionSize::Small { 1 } else { 2 }),
            tone: self.tone.map_or(0, |tone| if tone == LesionTone::Bright { 1 } else { 2 }),
        }
    }
}

/// Generates the scene of phantom `index` of a seed.
pub fn generate_scene(seed: u64, index: u64) -> Scene {
    let mut rng = stream_rng(seed, index, u64::from_le_bytes(*b"scene\0\0\0"));
    let kind = rng.choose(&PhantomKind::ALL).unwrap_or(PhantomKind::Ct);
    let count = if rng.chance(0.15) { 0 } else { 1 + rng.below(3) };
    let frame = generate_frame(kind, &mut rng);
    if count == 0 {
        return Scene { kind, lesions: Vec::new(), side: None, size: None, tone: None, frame };
    }
    let side = match rng.below(if count > 1 { 3 } else { 2 }) {
        0 => LesionSide::Left,
        1 => LesionSide::Right,
        _ => LesionSide::Both,
    };
    let size = if rng.chance(0.5) { LesionSize::Small } else { LesionSize::Large };
    let tone = if rng.chance(0.5) { LesionTone::Bright } else { LesionTone::Dark };
    let lesions = lesion_layout::place_lesions(
        &lesion_layout::LesionSpec { kind, frame, count, side, size },
        &mut rng,
    );
    Scene { kind, lesions, side: Some(side), size: Some(size), tone: Some(tone), frame }
}

fn generate_frame(kind: PhantomKind, rng: &mut impl RandomChoice) -> BodyFrame {
    let (axes, tilt) = match kind {
        PhantomKind::Ct => ((rng.between(55.0, 60.0), rng.between(46.0, 53.0)), 0.10),
        PhantomKind::Mri => ((rng.between(49.0, 54.0), rng.between(55.0, 60.0)), 0.08),
        PhantomKind::Radiograph => ((rng.between(58.0, 63.0), rng.between(56.0, 62.0)), 0.03),
        PhantomKind::Histology => ((64.0, 64.0), 0.5),
    };
    // A rational parametrisation of the circle avoids `sin`, whose last digit depends on the
    // platform.
    let t = rng.between(-tilt, tilt);
    let norm = 1.0 + t * t;
    let max_shift = 2.5;
    BodyFrame {
        centre: (
            64.0 + rng.between(-max_shift, max_shift),
            64.0 + rng.between(-max_shift, max_shift),
        ),
        axes,
        rotation: ((1.0 - t * t) / norm, 2.0 * t / norm),
        gain: rng.between(0.9, 1.08),
        brightness_offset: rng.between(-6.0, 8.0),
        noise_seed: rng.next_u64(),
    }
}
