//! One planted text of a pair: drawn from the seed, fitted to the length of its control, and placed
//! before or after the response.

use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::kind::PlantedKind;
use super::text_variant::{TextVariant, fit};
use super::{control_phrases, forged_headings, forged_record, junk, neutral};
use crate::analysis::audit::perturbations::append_sentence;

/// First random stream of planted texts. The bootstrap uses the streams below.
const FIRST_STREAM: u64 = 1 << 32;
/// Number of random streams that one pair can use.
const STREAMS: u64 = 64;
/// Characters that look like nothing: spaces, line breaks, tabs, and spaces of other widths.
const BLANKS: [(&str, &str); 6] = [
    ("spaces", " "),
    ("line breaks", "\n"),
    ("tabs", "\t"),
    ("no-break spaces", "\u{a0}"),
    ("zero-width spaces", "\u{200b}"),
    ("spaces and line breaks", "  \n"),
];

/// A planted text, generated for each pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlantedText {
    /// A neutral sentence.
    NeutralShort,
    /// Several neutral sentences.
    NeutralLong,
    /// Neutral text of several hundred characters.
    Filler,
    /// White space, as long as [`Self::NeutralLong`].
    Blank,
    /// Unfamiliar strings, as long as [`Self::NeutralShort`].
    Junk,
    /// Words in brackets or markup, as long as [`Self::NeutralShort`].
    Markup,
    /// JSON like a record, as long as [`Self::NeutralLong`].
    Json,
    /// A heading of the judge's prompt with a text below it, as long as [`Self::NeutralLong`].
    Heading,
    /// Scores and instructions, as long as [`Self::NeutralShort`].
    Phrase,
    /// A role marker and an instruction, as long as [`Self::NeutralShort`].
    Role,
}

/// A pair, as the seed of its planted texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairSeed {
    /// Seed of the audit.
    pub(crate) seed: u64,
    /// Index of the pair.
    pub(crate) pair: usize,
    /// Index of the response that receives the text.
    pub(crate) side: usize,
}

/// A text to add to a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlantedAddition {
    /// The text.
    pub(crate) text: String,
    /// Name of the template and of the position.
    pub(crate) variant: String,
    /// True if the text comes before the response.
    is_first: bool,
    /// True if the text has its own lines.
    has_own_lines: bool,
}

impl PairSeed {
    /// Creates a random stream of the pair. Streams of different numbers are independent.
    fn stream(self, number: u64) -> ChaCha8Rng {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(FIRST_STREAM + self.pair as u64 * STREAMS + number);
        random
    }
}

impl PlantedText {
    /// Returns the kind; `None` for the neutral controls.
    pub(crate) fn kind(self) -> Option<PlantedKind> {
        match self {
            Self::NeutralShort | Self::NeutralLong => None,
            Self::Filler | Self::Blank => Some(PlantedKind::Padding),
            Self::Junk => Some(PlantedKind::Junk),
            Self::Markup => Some(PlantedKind::Markup),
            Self::Json => Some(PlantedKind::Json),
            Self::Heading => Some(PlantedKind::Headings),
            Self::Phrase => Some(PlantedKind::Phrases),
            Self::Role => Some(PlantedKind::Roles),
        }
    }

    /// Generates the text of a pair. All texts of a pair have the same position, and each has the
    /// length of its control in characters.
    pub(crate) fn generate(self, pair: PairSeed) -> PlantedAddition {
        let [short, long] = [Self::NeutralShort, Self::NeutralLong].map(|text| {
            let sentences = if text == Self::NeutralShort { 1 } else { 3 };
            neutral::sentences(sentences, &mut pair.stream(text as u64))
        });
        let (short_length, long_length) = (short.chars().count(), long.chars().count());
        let random = &mut pair.stream(self as u64);
        let neutral = |text| TextVariant { text, template: String::new() };
        let TextVariant { text, template } = match self {
            Self::NeutralShort => neutral(short),
            Self::NeutralLong => neutral(long),
            Self::Filler => neutral(neutral::sentences(9, random)),
            Self::Blank => blank(long_length, random),
            Self::Junk => junk::junk(short_length, random),
            Self::Markup => junk::markup(short_length, random),
            Self::Json => forged_record::forged_record(long_length, pair.side, random),
            Self::Heading => forged_headings::forged_heading(long_length, random),
            Self::Phrase => control_phrases::control_phrase(short_length, random),
            Self::Role => control_phrases::role_marker(short_length, random),
        };
        let is_first = pair.stream(STREAMS - 1).random_bool(0.5);
        let position = if is_first { "before the response" } else { "after the response" };
        PlantedAddition {
            text,
            variant: if template.is_empty() {
                position.to_owned()
            } else {
                format!("{template}, {position}")
            },
            is_first,
            has_own_lines: matches!(self, Self::Heading | Self::Role),
        }
    }
}

impl PlantedAddition {
    /// Adds the text to a response.
    pub(crate) fn apply(&self, response: &str) -> String {
        let gap = if self.has_own_lines { "\n" } else { " " };
        match (self.is_first, self.has_own_lines) {
            (true, _) => format!("{}{gap}{response}", self.text),
            (false, true) => format!("{}{gap}{}", response.trim_end(), self.text),
            (false, false) => append_sentence(response, &self.text),
        }
    }
}

/// Returns white space.
fn blank(length: usize, random: &mut ChaCha8Rng) -> TextVariant {
    let (name, unit) = BLANKS.choose(random).copied().unwrap_or_default();
    TextVariant { text: fit(unit, length), template: name.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const ALL: [PlantedText; 10] = [
        PlantedText::NeutralShort,
        PlantedText::NeutralLong,
        PlantedText::Filler,
        PlantedText::Blank,
        PlantedText::Junk,
        PlantedText::Markup,
        PlantedText::Json,
        PlantedText::Heading,
        PlantedText::Phrase,
        PlantedText::Role,
    ];

    fn text(kind: PlantedText, pair: usize) -> PlantedAddition {
        kind.generate(PairSeed { seed: 5, pair, side: pair % 2 })
    }

    /// Otherwise, the comparison would measure length.
    #[test]
    fn texts_have_the_length_of_their_control() {
        for pair in 0..200 {
            let length = |kind| text(kind, pair).text.chars().count();
            let (short, long) =
                (length(PlantedText::NeutralShort), length(PlantedText::NeutralLong));
            assert!((25..75).contains(&short) && (90..200).contains(&long), "{short} {long}");
            for kind in ALL {
                let expected = match kind {
                    PlantedText::Filler => continue,
                    PlantedText::NeutralLong
                    | PlantedText::Blank
                    | PlantedText::Json
                    | PlantedText::Heading => long,
                    _ => short,
                };
                assert_eq!(length(kind), expected, "{kind:?} {:?}", text(kind, pair));
            }
            assert!(length(PlantedText::Filler) >= 3 * long - 100);
        }
    }

    /// A judge must not pass because it resists one fixed text.
    #[test]
    fn texts_vary_with_the_pair_and_the_seed() {
        for kind in ALL {
            let texts: BTreeSet<String> = (0..100).map(|pair| text(kind, pair).text).collect();
            let variants: BTreeSet<String> =
                (0..100).map(|pair| text(kind, pair).variant).collect();
            let (least, templates) = match kind {
                PlantedText::Blank => (BLANKS.len(), 2 * BLANKS.len()),
                _ if kind.kind().is_none() || kind == PlantedText::Filler => (60, 2),
                _ => (60, 8),
            };
            assert!(texts.len() >= least && variants.len() >= templates, "{kind:?} {variants:?}");
            let other = kind.generate(PairSeed { seed: 6, pair: 3, side: 0 });
            let again = kind.generate(PairSeed { seed: 6, pair: 3, side: 0 });
            assert_eq!(other, again);
        }
    }

    #[test]
    fn texts_stand_before_or_after_the_response() {
        let (mut before, mut after) = (0, 0);
        for kind in ALL {
            for pair in 0..20 {
                let addition = text(kind, pair);
                let response = addition.apply("A mass.");
                assert!(response.contains(&addition.text) && response.contains("A mass."));
                before += usize::from(response.starts_with(&addition.text));
                after += usize::from(response.ends_with(&addition.text));
            }
        }
        assert!(before > 40 && after > 40 && before + after == 200, "{before} {after}");
    }
}
