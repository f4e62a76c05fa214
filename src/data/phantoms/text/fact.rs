//! Facts about a scene and their wording.

use crate::data::phantoms::random_choice::RandomChoice;
use crate::data::phantoms::scene::Scene;
use crate::data::phantoms::scene::lesion::{LesionSide, LesionSize, LesionTone, PhantomKind};

/// Subject of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Concern {
    /// Image modality.
    Modality,
    /// Presence of a lesion.
    Presence,
    /// Number of lesions.
    Count,
    /// Side of the lesions.
    Side,
    /// Size of the lesions.
    Size,
    /// Tone of the lesions relative to the tissue.
    Tone,
}

impl Concern {
    /// Returns the word used in analyses.
    pub fn word(self) -> &'static str {
        match self {
            Self::Modality => "kind of image",
            Self::Presence => "presence",
            Self::Count => "count",
            Self::Side => "side",
            Self::Size => "size",
            Self::Tone => "tone",
        }
    }
}

/// A statement about a scene, true or false.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fact {
    /// The image has this modality.
    Modality(PhantomKind),
    /// There is a lesion (true) or no lesion (false).
    Presence(bool),
    /// The number of lesions.
    Count(usize),
    /// The lesions are on this side.
    Side(LesionSide),
    /// The lesions have this size.
    Size(LesionSize),
    /// The lesions have this tone.
    Tone(LesionTone),
}

impl Fact {
    /// Returns the true fact about a concern; `None` if the concern requires a lesion and there is
    /// none.
    pub fn from_scene(scene: &Scene, concern: Concern) -> Option<Self> {
        match concern {
            Concern::Modality => Some(Self::Modality(scene.kind)),
            Concern::Presence => Some(Self::Presence(scene.lesion_count() > 0)),
            Concern::Count => Some(Self::Count(scene.lesion_count())),
            Concern::Side => scene.side.map(Self::Side),
            Concern::Size => scene.size.map(Self::Size),
            Concern::Tone => scene.tone.map(Self::Tone),
        }
    }

    /// Returns the concern that the fact is about.
    pub fn concern(self) -> Concern {
        match self {
            Self::Modality(_) => Concern::Modality,
            Self::Presence(_) => Concern::Presence,
            Self::Count(_) => Concern::Count,
            Self::Side(_) => Concern::Side,
            Self::Size(_) => Concern::Size,
            Self::Tone(_) => Concern::Tone,
        }
    }

    /// Returns the short form for analyses: "two lesions", "left side", "CT image", "yes".
    pub fn short_text(self) -> &'static str {
        match self {
            Self::Modality(kind) => match kind {
                PhantomKind::Ct => "CT image",
                PhantomKind::Mri => "MRI image",
                PhantomKind::Radiograph => "X-ray image",
                PhantomKind::Histology => "histology image",
            },
            Self::Presence(true) => "yes",
            Self::Presence(false) => "no",
            Self::Count(0) => "no lesions",
            Self::Count(1) => "one lesion",
            Self::Count(2) => "two lesions",
            Self::Count(_) => "three lesions",
            Self::Side(LesionSide::Left) => "left side",
            Self::Side(LesionSide::Right) => "right side",
            Self::Side(LesionSide::Both) => "both sides",
            Self::Size(size) => size.key(),
            Self::Tone(tone) => tone.key(),
        }
    }

    /// Returns a modality with its article ("a CT image"). For other facts, this is
    /// [`Fact::short_text`].
    pub(crate) fn with_article(self) -> &'static str {
        match self {
            Self::Modality(PhantomKind::Ct) => "a CT image",
            Self::Modality(PhantomKind::Mri) => "an MRI image",
            Self::Modality(PhantomKind::Radiograph) => "an X-ray image",
            Self::Modality(PhantomKind::Histology) => "a histology image",
            other => other.short_text(),
        }
    }

    /// Returns a false fact about the same concern.
    ///
    /// `is_single`: the question has no other concern, so a count of zero is possible.
    pub(crate) fn false_alternative(
        self,
        scene: &Scene,
        is_single: bool,
        rng: &mut impl RandomChoice,
    ) -> Self {
        let pool: Vec<Self> = match self {
            Self::Modality(_) => PhantomKind::ALL.map(Self::Modality).to_vec(),
            Self::Presence(_) => [true, false].map(Self::Presence).to_vec(),
            Self::Count(_) => {
                // A single lesion cannot be on both sides.
                let on_both_sides = scene.side == Some(LesionSide::Both);
                let minimum = if is_single { 0 } else { 1 + usize::from(on_both_sides) };
                (minimum..=3).map(Self::Count).collect()
            }
            Self::Side(_) if scene.lesion_count() < 2 => {
                [LesionSide::Left, LesionSide::Right].map(Self::Side).to_vec()
            }
            Self::Side(_) => {
                [LesionSide::Left, LesionSide::Right, LesionSide::Both].map(Self::Side).to_vec()
            }
            Self::Size(_) => [LesionSize::Small, LesionSize::Large].map(Self::Size).to_vec(),
            Self::Tone(_) => [LesionTone::Bright, LesionTone::Dark].map(Self::Tone).to_vec(),
        };
        let truth = Self::from_scene(scene, self.concern());
        let wrong: Vec<Self> =
            pool.into_iter().filter(|fact| *fact != self && Some(*fact) != truth).collect();
        rng.choose(&wrong).unwrap_or(self)
    }
}
