//! Questions about a scene and their right answers.

use super::fact::{Concern, Fact};
use crate::data::phantoms::random_choice::RandomChoice;
use crate::data::phantoms::scene::Scene;
use crate::data::phantoms::scene::lesion::PhantomKind;

/// Type of a question. A `Verify` question proposes a fact and is answered yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuestionKind {
    /// An open question about one concern.
    Ask(Concern),
    /// Whether the proposed fact is true.
    Verify(Concern),
    /// Number and side of the lesions.
    CountAndSide,
    /// Size and tone of the lesions.
    SizeAndTone,
    /// Presence of a lesion, and image modality.
    PresenceAndModality,
}

impl QuestionKind {
    /// All types, in sampling order.
    pub const ALL: [Self; 13] = [
        Self::Ask(Concern::Modality),
        Self::Ask(Concern::Presence),
        Self::Ask(Concern::Count),
        Self::Ask(Concern::Side),
        Self::Ask(Concern::Size),
        Self::Ask(Concern::Tone),
        Self::Verify(Concern::Modality),
        Self::Verify(Concern::Count),
        Self::Verify(Concern::Side),
        Self::Verify(Concern::Tone),
        Self::CountAndSide,
        Self::SizeAndTone,
        Self::PresenceAndModality,
    ];

    /// Returns the name in `meta`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Ask(Concern::Modality) => "modality",
            Self::Ask(Concern::Presence) | Self::Verify(Concern::Presence) => "presence",
            Self::Ask(Concern::Count) => "count",
            Self::Ask(Concern::Side) => "side",
            Self::Ask(Concern::Size) => "size",
            Self::Ask(Concern::Tone) => "tone",
            Self::Verify(Concern::Modality) => "verify_modality",
            Self::Verify(Concern::Count) => "verify_count",
            Self::Verify(Concern::Side) => "verify_side",
            Self::Verify(Concern::Size) => "verify_size",
            Self::Verify(Concern::Tone) => "verify_tone",
            Self::CountAndSide => "count_and_side",
            Self::SizeAndTone => "size_and_tone",
            Self::PresenceAndModality => "presence_and_modality",
        }
    }

    /// Returns the concerns of the question, in order.
    pub fn concerns(self) -> &'static [Concern] {
        match self {
            Self::Ask(Concern::Modality) | Self::Verify(Concern::Modality) => &[Concern::Modality],
            Self::Ask(Concern::Presence) | Self::Verify(Concern::Presence) => &[Concern::Presence],
            Self::Ask(Concern::Count) | Self::Verify(Concern::Count) => &[Concern::Count],
            Self::Ask(Concern::Side) | Self::Verify(Concern::Side) => &[Concern::Side],
            Self::Ask(Concern::Size) | Self::Verify(Concern::Size) => &[Concern::Size],
            Self::Ask(Concern::Tone) | Self::Verify(Concern::Tone) => &[Concern::Tone],
            Self::CountAndSide => &[Concern::Count, Concern::Side],
            Self::SizeAndTone => &[Concern::Size, Concern::Tone],
            Self::PresenceAndModality => &[Concern::Presence, Concern::Modality],
        }
    }

    /// Returns true if the premise holds: side, size and tone require a lesion.
    pub fn is_applicable(self, scene: &Scene) -> bool {
        let has_lesion = scene.lesion_count() > 0;
        match self {
            // "How many, and on which side?" requires a lesion too.
            Self::CountAndSide => has_lesion,
            _ => self.concerns().iter().all(|&concern| Fact::from_scene(scene, concern).is_some()),
        }
    }
}

/// A question about a scene.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Question type.
    pub kind: QuestionKind,
    /// Fact proposed by a `Verify` question.
    pub proposed: Option<Fact>,
    /// Text of the question.
    pub text: String,
}

impl Question {
    /// Samples a question of this type in one of its phrasings; `None` if the premise fails.
    pub(crate) fn sample(
        kind: QuestionKind,
        scene: &Scene,
        rng: &mut impl RandomChoice,
    ) -> Option<Self> {
        if !kind.is_applicable(scene) {
            return None;
        }
        let proposed = match kind {
            QuestionKind::Verify(concern) => {
                let truth = Fact::from_scene(scene, concern)?;
                let fact =
                    if rng.chance(0.5) { truth } else { truth.false_alternative(scene, true, rng) };
                // Yes and no are ambiguous as answers to "Are there no lesions?".
                Some(if fact == Fact::Count(0) { Fact::Count(1) } else { fact })
            }
            _ => None,
        };
        let phrase = match proposed {
            Some(fact) => sample_proposal(fact, rng),
            None => rng.phrase(phrasings(kind)),
        };
        let text = pluralize(phrase, scene.lesion_count());
        Some(Self { kind, proposed, text })
    }

    /// Samples a question whose premise holds, with equal probability for every type.
    pub(crate) fn sample_applicable(scene: &Scene, rng: &mut impl RandomChoice) -> Self {
        let applicable: Vec<QuestionKind> =
            QuestionKind::ALL.into_iter().filter(|kind| kind.is_applicable(scene)).collect();
        let kind = rng.choose(&applicable).unwrap_or(QuestionKind::Ask(Concern::Modality));
        // The fallback is never used: every type in `applicable` can be sampled.
        Self::sample(kind, scene, rng).unwrap_or_else(|| Self {
            kind: QuestionKind::Ask(Concern::Modality),
            proposed: None,
            text: rng.phrase(phrasings(QuestionKind::Ask(Concern::Modality))).to_owned(),
        })
    }

    /// Returns the facts of the right answer, one per concern.
    pub fn correct_facts(&self, scene: &Scene) -> Vec<Fact> {
        self.kind.concerns().iter().filter_map(|&c| Fact::from_scene(scene, c)).collect()
    }
}

/// Returns the facts that a `Verify` question may propose about a scene.
pub(crate) fn possible_proposals(concern: Concern, scene: &Scene) -> Vec<Fact> {
    use crate::data::phantoms::scene::lesion::{LesionSide, LesionSize, LesionTone};
    match concern {
        Concern::Modality => PhantomKind::ALL.map(Fact::Modality).to_vec(),
        Concern::Presence => vec![Fact::Presence(true)],
        Concern::Count => [1, 2, 3].map(Fact::Count).to_vec(),
        Concern::Side if scene.lesion_count() < 2 => {
            [LesionSide::Left, LesionSide::Right].map(Fact::Side).to_vec()
        }
        Concern::Side => {
            [LesionSide::Left, LesionSide::Right, LesionSide::Both].map(Fact::Side).to_vec()
        }
        Concern::Size => [LesionSize::Small, LesionSize::Large].map(Fact::Size).to_vec(),
        Concern::Tone => [LesionTone::Bright, LesionTone::Dark].map(Fact::Tone).to_vec(),
    }
}

fn sample_proposal(fact: Fact, rng: &mut impl RandomChoice) -> &'static str {
    rng.phrase(proposal_texts(fact))
}

pub(crate) fn proposal_texts(fact: Fact) -> &'static [&'static str] {
    use crate::data::phantoms::scene::lesion::{LesionSide, LesionSize, LesionTone};
    match fact {
        Fact::Modality(PhantomKind::Ct) => &["Is this a CT image?", "Was this image made by CT?"],
        Fact::Modality(PhantomKind::Mri) => {
            &["Is this an MRI image?", "Was this image made by MRI?"]
        }
        Fact::Modality(PhantomKind::Radiograph) => {
            &["Is this an X-ray image?", "Was this image made by X-ray?"]
        }
        Fact::Modality(PhantomKind::Histology) => {
            &["Is this a histology image?", "Does this image show histology?"]
        }
        Fact::Presence(_) => phrasings(QuestionKind::Ask(Concern::Presence)),
        Fact::Count(0 | 1) => &["Is there exactly one lesion?", "Does it show exactly one lesion?"],
        Fact::Count(2) => &["Are there exactly two lesions?", "Does it show exactly two lesions?"],
        Fact::Count(_) => {
            &["Are there exactly three lesions?", "Does it show exactly three lesions?"]
        }
        Fact::Side(LesionSide::Left) => {
            &["Is the lesion on the left side?", "Does the lesion lie on the left side?"]
        }
        Fact::Side(LesionSide::Right) => {
            &["Is the lesion on the right side?", "Does the lesion lie on the right side?"]
        }
        Fact::Side(LesionSide::Both) => {
            &["Is the lesion on both sides?", "Does the lesion lie on both sides?"]
        }
        Fact::Size(LesionSize::Small) => &["Is the lesion small?"],
        Fact::Size(LesionSize::Large) => &["Is the lesion large?"],
        Fact::Tone(LesionTone::Bright) => {
            &["Is the lesion bright?", "Does the lesion look bright?"]
        }
        Fact::Tone(LesionTone::Dark) => &["Is the lesion dark?", "Does the lesion look dark?"],
    }
}

pub(crate) fn phrasings(kind: QuestionKind) -> &'static [&'static str] {
    match kind {
        QuestionKind::Ask(Concern::Modality) | QuestionKind::Verify(Concern::Modality) => {
            &["What kind of image is this?", "Name the kind of image.", "Which imaging is this?"]
        }
        QuestionKind::Ask(Concern::Presence) | QuestionKind::Verify(Concern::Presence) => {
            &["Is there a lesion?", "Does the image show a lesion?", "Can you see any lesion?"]
        }
        QuestionKind::Ask(Concern::Count) | QuestionKind::Verify(Concern::Count) => {
            &["How many lesions are there?", "How many lesions do you see?", "Count the lesions."]
        }
        QuestionKind::Ask(Concern::Side) | QuestionKind::Verify(Concern::Side) => &[
            "On which side is the lesion?",
            "Which side is the lesion on?",
            "Where is the lesion?",
        ],
        QuestionKind::Ask(Concern::Size) | QuestionKind::Verify(Concern::Size) => &[
            "What size is the lesion?",
            "Is the lesion small or large?",
            "How large is the lesion?",
        ],
        QuestionKind::Ask(Concern::Tone) | QuestionKind::Verify(Concern::Tone) => {
            &["Is the lesion bright or dark?", "How bright is the lesion?"]
        }
        QuestionKind::CountAndSide => &[
            "How many lesions are there, and on which side?",
            "Count the lesions and name their side.",
        ],
        QuestionKind::SizeAndTone => &[
            "What size is the lesion, and is it bright or dark?",
            "How large and how bright is the lesion?",
        ],
        QuestionKind::PresenceAndModality => &[
            "Is there a lesion, and what kind of image is this?",
            "What kind of image is this, and does it show a lesion?",
        ],
    }
}

/// Puts "the lesion" and its verb into the plural if the scene has several lesions.
pub(crate) fn pluralize(text: &str, count: usize) -> String {
    if count < 2 || !text.contains("the lesion") {
        return text.to_owned();
    }
    if text.contains("the lesions") {
        return text.to_owned();
    }
    text.replace("is the lesion", "are the lesions")
        .replace("Is the lesion", "Are the lesions")
        .replace("Does the lesion ", "Do the lesions ")
        .replace("and is it", "and are they")
        .replace("the lesion?", "the lesions?")
}
