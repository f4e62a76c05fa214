//! Varied foreign text: words in other scripts, and sentences with many different words.

use std::ops::RangeInclusive;

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// Ranges of characters of other scripts. The junk of the audit has other characters, except that it also
/// uses forty of these Chinese characters and Korean syllables.
const SCRIPTS: &[RangeInclusive<u32>] = &[
    0x00DF..=0x00F6, // Latin with marks
    0x0100..=0x017F,
    0x03E2..=0x03EF, // Coptic
    0x0460..=0x04FF, // Cyrillic of other languages than Russian
    0x05D0..=0x05EA, // Hebrew
    0x0621..=0x064A, // Arabic
    0x0905..=0x0939, // Devanagari
    0x0995..=0x09A8, // Bengali
    0x0E40..=0x0E59, // Thai vowels and digits
    0x10D0..=0x10F0, // Georgian
    0x1200..=0x1246, // Ethiopic
    0x20A0..=0x20BF, // currencies
    0x2460..=0x24FF, // enclosed letters
    0x2580..=0x259F, // blocks
    0x2701..=0x27BF, // ornaments
    0x3041..=0x3096, // Hiragana
    0x30A1..=0x30FA, // Katakana
    0x4E00..=0x9FA5, // Chinese
    0xAC00..=0xD7A3, // Korean
    0x1F300..=0x1F5FF,
];
const SUBJECTS: &[&str] = &[
    "A farmer",
    "The captain",
    "Your sister",
    "The old king",
    "A young fox",
    "The orchestra",
    "That village",
    "My first car",
    "The gardener",
    "A painter",
    "The small shop",
    "His cousin",
    "The committee",
    "A tall sailor",
    "The circus",
    "Our landlord",
    "The violin",
    "A lost dog",
    "The castle",
    "Their school",
    "The mayor",
    "A wooden ship",
    "The apple tree",
    "This story",
];
const VERBS: &[&str] = &[
    "visited",
    "sold",
    "described",
    "forgot",
    "carried",
    "built",
    "followed",
    "liked",
    "painted",
    "missed",
    "remembered",
    "crossed",
    "repaired",
    "borrowed",
    "watched",
    "left",
    "praised",
    "counted",
    "heard",
    "bought",
];
const OBJECTS: &[&str] = &[
    "a bag of flour",
    "the long wall",
    "three silver coins",
    "an empty bottle",
    "the northern road",
    "a pair of boots",
    "the evening concert",
    "a basket of pears",
    "some dusty books",
    "the ferry",
    "two wild horses",
    "a letter from abroad",
    "the market square",
    "an iron gate",
    "the lake",
    "a good recipe for soup",
    "the last bus",
    "a yellow kite",
    "many strange songs",
    "the harbour",
];
const ENDS: &[&str] = &[
    "after dinner",
    "in spring",
    "before sunrise",
    "without a word",
    "for the third time",
    "on the way home",
    "with great care",
    "near the forest",
    "a long time ago",
    "last winter",
    "during the festival",
    "as everybody expected",
    "because it rained",
    "by accident",
];

/// Returns random words in one of the other scripts, separated by spaces.
pub(super) fn in_other_script(words: usize, rng: &mut ChaCha8Rng) -> String {
    let script = SCRIPTS.choose(rng).cloned().unwrap_or(0x05D0..=0x05EA);
    let words: Vec<String> = (0..words).map(|_| word(&script, rng)).collect();
    words.join(" ")
}

/// Returns sentences about something else, separated by spaces.
pub(super) fn sentences(count: usize, rng: &mut ChaCha8Rng) -> String {
    let sentences: Vec<String> = (0..count).map(|_| sentence(rng)).collect();
    sentences.join(" ")
}

fn word(script: &RangeInclusive<u32>, rng: &mut ChaCha8Rng) -> String {
    let length = rng.random_range(2..=9);
    (0..length).filter_map(|_| char::from_u32(rng.random_range(script.clone()))).collect()
}

fn sentence(rng: &mut ChaCha8Rng) -> String {
    let [subject, verb, object, end] = [SUBJECTS, VERBS, OBJECTS, ENDS]
        .map(|words| words.choose(rng).copied().unwrap_or_default());
    format!("{subject} {verb} {object} {end}.")
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    #[test]
    fn words_have_letters_of_one_script() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for _ in 0..200 {
            let text = in_other_script(4, &mut rng);
            assert_eq!(text.split(' ').count(), 4, "{text}");
            let letters = || text.chars().filter(|c| *c != ' ').map(u32::from);
            let has_all = |script: &&RangeInclusive<u32>| letters().all(|c| script.contains(&c));
            assert!(SCRIPTS.iter().any(|script| has_all(&script)), "{text}");
        }
    }

    #[test]
    fn sentences_vary() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let texts: std::collections::HashSet<_> = (0..50).map(|_| sentences(3, &mut rng)).collect();
        assert_eq!(texts.len(), 50);
        assert!(texts.iter().all(|text| text.matches('.').count() == 3));
    }
}
