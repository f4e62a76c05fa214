//! Medical errors put into a right answer: one fact exchanged, the rest as it was.
//!
//! Only what is plainly wrong is made, by lists of words; an answer in which no such word stands is not
//! changed, and is said to have been left out.

use super::probe::Perturbation;
use crate::analysis::audit::word_sequence::WordSequence;

/// Words for the two sides.
const SIDES: [[&str; 2]; 6] = [
    ["left", "right"],
    ["leftsided", "rightsided"],
    ["leftward", "rightward"],
    ["sinistral", "dextral"],
    ["bilateral", "unilateral"],
    ["bilaterally", "unilaterally"],
];

/// Numbers in words, from zero.
const NUMBERS: [&str; 11] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
];

/// Organs; each is exchanged for the next that is not spoken of.
const ORGANS: [&str; 15] = [
    "liver",
    "lung",
    "kidney",
    "brain",
    "heart",
    "spleen",
    "bladder",
    "stomach",
    "pancreas",
    "colon",
    "esophagus",
    "prostate",
    "uterus",
    "thyroid",
    "breast",
];

/// The same as adjectives.
const ADJECTIVES: [&str; 9] = [
    "hepatic",
    "pulmonary",
    "renal",
    "cerebral",
    "cardiac",
    "splenic",
    "gastric",
    "pancreatic",
    "thyroidal",
];

/// Kinds of images, all their names in a row; the first is what is written for another.
const MODALITIES: [&[&str]; 5] = [
    &["CT", "tomography"],
    &["MRI", "MR"],
    &["X-ray", "xray", "radiograph", "radiography", "CXR"],
    &["ultrasound", "sonography", "ultrasonography"],
    &["histology", "histopathology", "microscopy"],
];

/// Words that deny, and what affirms in their place.
const DENIED: [(&str, &str); 8] = [
    ("no", "some"),
    ("not", ""),
    ("without", "with"),
    ("absent", "present"),
    ("negative", "positive"),
    ("normal", "abnormal"),
    ("unremarkable", "remarkable"),
    ("none", "some"),
];

/// Verbs behind which "not" denies.
const VERBS: [&str; 9] = [
    "is", "are", "was", "were", "can", "does", "do", "has", "have",
];

/// An answer with an error of this kind; `None` where it says nothing of the kind.
///
/// `question` keeps an organ that it names from being put in for another.
pub(super) fn with_error(change: Perturbation, answer: &str, question: &str) -> Option<String> {
    let mut text = WordSequence::of(answer);
    let changed = match change {
        Perturbation::Side => side(&mut text),
        Perturbation::Negation => negation(&mut text),
        Perturbation::Number => number(&mut text),
        Perturbation::Organ => organ(&mut text, question),
        Perturbation::Modality => modality(&mut text),
        _ => None,
    };
    changed.map(|()| text.join()).filter(|made| made != answer)
}

fn side(text: &mut WordSequence) -> Option<()> {
    let words = text.plain();
    let has = |side: &str| words.iter().any(|(_, word)| word == side);
    // Both sides exchanged may say the same again.
    if SIDES.iter().any(|[a, b]| has(a) && has(b)) {
        return None;
    }
    let mut found = None;
    for (at, word) in text.plain() {
        for [a, b] in SIDES {
            let other = if word == a {
                b
            } else if word == b {
                a
            } else {
                continue;
            };
            let other = if text.words.get(at).is_some_and(|w| w.contains('-')) {
                other.replace("sided", "-sided")
            } else {
                other.to_owned()
            };
            text.put(at, &other);
            found = Some(());
        }
    }
    found
}

fn negation(text: &mut WordSequence) -> Option<()> {
    let plain = text.plain();
    let mut found = None;
    let mut from = 0;
    if let Some((_, word)) = plain.first() {
        let other = match word.as_str() {
            "yes" => Some("no"),
            // "No lesion" denies the lesion; "No, ..." denies the question.
            "no" if text.gaps.get(1).is_none_or(|gap| !gap.trim().is_empty()) => Some("yes"),
            _ => None,
        };
        if let Some(other) = other {
            text.put(0, other);
            (found, from) = (Some(()), 1);
        }
    }
    for (at, word) in plain.iter().skip(from) {
        if let Some((_, affirmed)) = DENIED.iter().find(|(denied, _)| denied == word) {
            text.put(*at, affirmed);
            return Some(());
        }
        if word == "abnormal" {
            text.put(*at, "normal");
            return Some(());
        }
    }
    // Nothing is denied: the first verb is.
    let verb = plain
        .iter()
        .skip(from)
        .find(|(_, w)| VERBS.contains(&w.as_str()));
    if let Some((at, _)) = verb {
        let word = text.words.get_mut(*at)?;
        word.push_str(" not");
        found = Some(());
    }
    found
}

fn number(text: &mut WordSequence) -> Option<()> {
    for (at, word) in text.plain() {
        let named = NUMBERS.iter().position(|name| *name == word);
        let digits: Option<usize> = word.parse().ok();
        let Some(value) = named.or(digits) else {
            continue;
        };
        // "One" as a pronoun ("this one", "one of") counts nothing.
        let before = at.checked_sub(1).and_then(|i| text.words.get(i));
        let after = text.words.get(at + 1).map(|w| w.to_lowercase());
        let pronoun = ["this", "that", "which", "the", "no"];
        if value == 1
            && named.is_some()
            && (before.is_some_and(|w| pronoun.contains(&w.to_lowercase().as_str()))
                || after.as_deref() == Some("of"))
        {
            continue;
        }
        let other = if value == 2 || value == 1 || value == 0 {
            value + 1
        } else {
            value - 1
        };
        let name = NUMBERS.get(other).filter(|_| named.is_some());
        let written = name.map_or_else(|| other.to_string(), |name| (*name).to_owned());
        text.put(at, &written);
        if value == 1 {
            plural(text, at);
        }
        return Some(());
    }
    None
}

/// Makes plural what a number stands with: "There is one lesion" reads "There are two lesions".
fn plural(text: &mut WordSequence, at: usize) {
    let verb = at.checked_sub(1);
    if let Some(i) = verb
        && text.words.get(i).is_some_and(|w| w == "is")
    {
        text.put(i, "are");
    }
    let spaced = text.gaps.get(at + 1).is_some_and(|gap| gap == " ");
    if let Some(noun) = text.words.get_mut(at + 1).filter(|_| spaced)
        && noun.chars().all(char::is_lowercase)
        && !noun.ends_with('s')
        && noun.len() > 2
    {
        noun.push('s');
    }
}

fn organ(text: &mut WordSequence, question: &str) -> Option<()> {
    let asked = question.to_lowercase();
    let said = text.join().to_lowercase();
    for (at, word) in text.plain() {
        for list in [&ORGANS[..], &ADJECTIVES[..]] {
            let single = word.strip_suffix('s').unwrap_or(&word);
            let Some(place) = list
                .iter()
                .position(|organ| *organ == word || *organ == single)
            else {
                continue;
            };
            let is_plural = list.get(place).is_some_and(|organ| *organ != word);
            let mut others = list.iter().cycle().skip(place + 1).take(list.len() - 1);
            let other = others.find(|o| !asked.contains(**o) && !said.contains(**o))?;
            let ending = if is_plural { "s" } else { "" };
            text.put(at, &format!("{other}{ending}"));
            text.fit_article(at, other.starts_with(['a', 'e', 'i', 'o', 'u']));
            return Some(());
        }
    }
    None
}

fn modality(text: &mut WordSequence) -> Option<()> {
    for (at, word) in text.plain() {
        let is = |names: &&&[&str]| {
            names
                .iter()
                .any(|n| n.to_lowercase().replace('-', "") == word)
        };
        let Some(own) = MODALITIES.iter().position(|names| is(&names)) else {
            continue;
        };
        let other = MODALITIES.iter().cycle().nth(own + 1)?.first()?;
        // Such names keep their own capitals.
        (*other).clone_into(text.words.get_mut(at)?);
        text.fit_article(at, matches!(*other, "MRI" | "X-ray" | "ultrasound"));
        return Some(());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(change: Perturbation, answer: &str) -> String {
        with_error(change, answer, "Which organ is it?").unwrap_or_default()
    }

    #[test]
    fn sides_change_throughout() {
        assert_eq!(made(Perturbation::Side, "Left lung."), "Right lung.");
        assert_eq!(
            made(Perturbation::Side, "The left-sided mass grows"),
            "The right-sided mass grows"
        );
        assert_eq!(made(Perturbation::Side, "RIGHT"), "LEFT");
        assert_eq!(
            made(Perturbation::Side, "Bilateral effusion"),
            "Unilateral effusion"
        );
        assert_eq!(made(Perturbation::Side, "leftover"), "");
        assert_eq!(made(Perturbation::Side, "Left and right lungs."), "");
    }

    #[test]
    fn what_is_said_is_denied_and_what_is_denied_is_said() {
        for (right, wrong) in [
            ("Yes", "No"),
            ("no.", "yes."),
            ("Yes, there is one lesion.", "No, there is not one lesion."),
            ("No, no lesion is visible.", "Yes, some lesion is visible."),
            ("No lesion is seen.", "Some lesion is seen."),
            ("The heart is not enlarged.", "The heart is enlarged."),
            ("The lesions are dark.", "The lesions are not dark."),
            ("Normal chest", "Abnormal chest"),
            ("No, I see three lesions.", "Yes, I see three lesions."),
        ] {
            assert_eq!(made(Perturbation::Negation, right), wrong);
        }
        assert_eq!(made(Perturbation::Negation, "Pneumonia"), "");
    }

    #[test]
    fn numbers_stay_grammatical() {
        for (right, wrong) in [
            ("There is one lesion.", "There are two lesions."),
            ("I see three lesions.", "I see two lesions."),
            ("2", "3"),
            ("12 ribs", "11 ribs"),
        ] {
            assert_eq!(made(Perturbation::Number, right), wrong);
        }
        for none in ["T2 weighted", "3.5 cm", "this one", "L5"] {
            assert_eq!(made(Perturbation::Number, none), "", "{none}");
        }
    }

    #[test]
    fn organs_and_kinds_of_images_are_exchanged_for_others() {
        assert_eq!(
            made(Perturbation::Organ, "An enlarged liver"),
            "An enlarged lung"
        );
        assert_eq!(
            made(Perturbation::Organ, "Both kidneys and brain"),
            "Both hearts and brain"
        );
        let asked = with_error(Perturbation::Organ, "Liver", "Lung or kidney?");
        assert_eq!(asked.as_deref(), Some("Brain"));
        assert_eq!(made(Perturbation::Organ, "hepatic vein"), "pulmonary vein");
        assert_eq!(
            made(Perturbation::Modality, "This is a CT image."),
            "This is an MRI image."
        );
        assert_eq!(made(Perturbation::Modality, "An MRI"), "An X-ray");
        assert_eq!(made(Perturbation::Modality, "an x-ray"), "an ultrasound");
        assert_eq!(
            made(Perturbation::Modality, "A radiograph"),
            "An ultrasound"
        );
        assert_eq!(
            made(Perturbation::Modality, "a histology image"),
            "a CT image"
        );
        assert_eq!(made(Perturbation::Modality, "a mass"), "");
    }
}
