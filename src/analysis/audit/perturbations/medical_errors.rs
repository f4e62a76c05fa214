//! Medical errors in a correct response: one fact is replaced, the rest is unchanged.
//!
//! Word lists define the replacements, so that every changed response is wrong. A response without
//! a listed word is not changed.

use super::word_sequence::WordSequence;

/// Kind of a medical error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MedicalError {
    /// Left and right exchanged.
    Side,
    /// Yes and no exchanged, or a finding negated.
    Negation,
    /// Another number.
    Number,
    /// Another organ.
    Organ,
    /// Another imaging modality.
    Modality,
}

/// Words for the two sides of the body.
const SIDE_WORDS: [[&str; 2]; 6] = [
    ["left", "right"],
    ["leftsided", "rightsided"],
    ["leftward", "rightward"],
    ["sinistral", "dextral"],
    ["bilateral", "unilateral"],
    ["bilaterally", "unilaterally"],
];

/// Number words, from zero.
const NUMBER_WORDS: [&str; 11] =
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

/// Organs; each is replaced by the next one that neither question nor response names.
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

/// Adjectives of organs.
const ORGAN_ADJECTIVES: [&str; 9] = [
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

/// Imaging modalities with their synonyms. A replacement uses the first name.
const MODALITIES: [&[&str]; 5] = [
    &["CT", "tomography"],
    &["MRI", "MR"],
    &["X-ray", "xray", "radiograph", "radiography", "CXR"],
    &["ultrasound", "sonography", "ultrasonography"],
    &["histology", "histopathology", "microscopy"],
];

/// Negating words and their replacements.
const NEGATIONS: [(&str, &str); 8] = [
    ("no", "some"),
    ("not", ""),
    ("without", "with"),
    ("absent", "present"),
    ("negative", "positive"),
    ("normal", "abnormal"),
    ("unremarkable", "remarkable"),
    ("none", "some"),
];

/// Verbs that "not" negates.
const NEGATABLE_VERBS: [&str; 9] = ["is", "are", "was", "were", "can", "does", "do", "has", "have"];

/// Inserts an error of one kind into a response. `None` if the response has no word for it.
///
/// An organ that `question` names is not used as a replacement.
pub(crate) fn insert_error(kind: MedicalError, response: &str, question: &str) -> Option<String> {
    let mut text = WordSequence::split(response);
    let changed = match kind {
        MedicalError::Side => swap_side(&mut text),
        MedicalError::Negation => negate(&mut text),
        MedicalError::Number => change_number(&mut text),
        MedicalError::Organ => change_organ(&mut text, question),
        MedicalError::Modality => change_modality(&mut text),
    };
    changed.map(|()| text.join()).filter(|changed| changed != response)
}

fn swap_side(text: &mut WordSequence) -> Option<()> {
    let words = text.normalized();
    let has = |side: &str| words.iter().any(|(_, word)| word == side);
    // If the text names both sides, the text with exchanged sides may mean the same.
    if SIDE_WORDS.iter().any(|[a, b]| has(a) && has(b)) {
        return None;
    }
    let mut changed = None;
    for (index, word) in text.normalized() {
        for [a, b] in SIDE_WORDS {
            let other = if word == a {
                b
            } else if word == b {
                a
            } else {
                continue;
            };
            let other = if text.words.get(index).is_some_and(|w| w.contains('-')) {
                other.replace("sided", "-sided")
            } else {
                other.to_owned()
            };
            text.replace_word(index, &other);
            changed = Some(());
        }
    }
    changed
}

fn negate(text: &mut WordSequence) -> Option<()> {
    let words = text.normalized();
    let mut changed = None;
    let mut first = 0;
    if let Some((_, word)) = words.first() {
        let other = match word.as_str() {
            "yes" => Some("no"),
            // "No lesion" negates the lesion; "No, ..." answers the question.
            "no" if text.gaps.get(1).is_none_or(|gap| !gap.trim().is_empty()) => Some("yes"),
            _ => None,
        };
        if let Some(other) = other {
            text.replace_word(0, other);
            (changed, first) = (Some(()), 1);
        }
    }
    for (index, word) in words.iter().skip(first) {
        if let Some((_, affirmed)) = NEGATIONS.iter().find(|(negation, _)| negation == word) {
            text.replace_word(*index, affirmed);
            return Some(());
        }
        if word == "abnormal" {
            text.replace_word(*index, "normal");
            return Some(());
        }
    }
    // Without a negation, negate the first verb.
    let verb = words.iter().skip(first).find(|(_, w)| NEGATABLE_VERBS.contains(&w.as_str()));
    if let Some((index, _)) = verb {
        let word = text.words.get_mut(*index)?;
        word.push_str(" not");
        changed = Some(());
    }
    changed
}

fn change_number(text: &mut WordSequence) -> Option<()> {
    for (index, word) in text.normalized() {
        let named = NUMBER_WORDS.iter().position(|name| *name == word);
        let digits: Option<usize> = word.parse().ok();
        let Some(value) = named.or(digits) else {
            continue;
        };
        // "One" as a pronoun ("this one", "one of") is not a number.
        let before = index.checked_sub(1).and_then(|i| text.words.get(i));
        let after = text.words.get(index + 1).map(|w| w.to_lowercase());
        let determiners = ["this", "that", "which", "the", "no"];
        if value == 1
            && named.is_some()
            && (before.is_some_and(|w| determiners.contains(&w.to_lowercase().as_str()))
                || after.as_deref() == Some("of"))
        {
            continue;
        }
        let other = if value == 2 || value == 1 || value == 0 { value + 1 } else { value - 1 };
        let name = NUMBER_WORDS.get(other).filter(|_| named.is_some());
        let written = name.map_or_else(|| other.to_string(), |name| (*name).to_owned());
        text.replace_word(index, &written);
        if value == 1 {
            make_plural(text, index);
        }
        return Some(());
    }
    None
}

/// Makes the noun after a number plural: "There is one lesion" becomes "There are two lesions".
fn make_plural(text: &mut WordSequence, number: usize) {
    let verb = number.checked_sub(1);
    if let Some(i) = verb
        && text.words.get(i).is_some_and(|w| w == "is")
    {
        text.replace_word(i, "are");
    }
    let spaced = text.gaps.get(number + 1).is_some_and(|gap| gap == " ");
    if let Some(noun) = text.words.get_mut(number + 1).filter(|_| spaced)
        && noun.chars().all(char::is_lowercase)
        && !noun.ends_with('s')
        && noun.len() > 2
    {
        noun.push('s');
    }
}

fn change_organ(text: &mut WordSequence, question: &str) -> Option<()> {
    let question = question.to_lowercase();
    let response = text.join().to_lowercase();
    for (index, word) in text.normalized() {
        for list in [&ORGANS[..], &ORGAN_ADJECTIVES[..]] {
            let single = word.strip_suffix('s').unwrap_or(&word);
            let Some(position) = list.iter().position(|organ| *organ == word || *organ == single)
            else {
                continue;
            };
            let is_plural = list.get(position).is_some_and(|organ| *organ != word);
            let mut others = list.iter().cycle().skip(position + 1).take(list.len() - 1);
            let other = others.find(|o| !question.contains(**o) && !response.contains(**o))?;
            let suffix = if is_plural { "s" } else { "" };
            text.replace_word(index, &format!("{other}{suffix}"));
            text.fix_article(index, other.starts_with(['a', 'e', 'i', 'o', 'u']));
            return Some(());
        }
    }
    None
}

fn change_modality(text: &mut WordSequence) -> Option<()> {
    for (index, word) in text.normalized() {
        let has_word =
            |names: &&&[&str]| names.iter().any(|n| n.to_lowercase().replace('-', "") == word);
        let Some(named) = MODALITIES.iter().position(|names| has_word(&names)) else {
            continue;
        };
        let other = MODALITIES.iter().cycle().nth(named + 1)?.first()?;
        // Names of modalities keep their capitals.
        (*other).clone_into(text.words.get_mut(index)?);
        text.fix_article(index, matches!(*other, "MRI" | "X-ray" | "ultrasound"));
        return Some(());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_error(kind: MedicalError, answer: &str) -> String {
        insert_error(kind, answer, "Which organ is it?").unwrap_or_default()
    }

    #[test]
    fn all_side_words_change() {
        assert_eq!(with_error(MedicalError::Side, "Left lung."), "Right lung.");
        assert_eq!(
            with_error(MedicalError::Side, "The left-sided mass grows"),
            "The right-sided mass grows"
        );
        assert_eq!(with_error(MedicalError::Side, "RIGHT"), "LEFT");
        assert_eq!(with_error(MedicalError::Side, "Bilateral effusion"), "Unilateral effusion");
        assert_eq!(with_error(MedicalError::Side, "leftover"), "");
        assert_eq!(with_error(MedicalError::Side, "Left and right lungs."), "");
    }

    #[test]
    fn negation_is_inverted() {
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
            assert_eq!(with_error(MedicalError::Negation, right), wrong);
        }
        assert_eq!(with_error(MedicalError::Negation, "Pneumonia"), "");
    }

    #[test]
    fn numbers_stay_grammatical() {
        for (right, wrong) in [
            ("There is one lesion.", "There are two lesions."),
            ("I see three lesions.", "I see two lesions."),
            ("2", "3"),
            ("12 ribs", "11 ribs"),
        ] {
            assert_eq!(with_error(MedicalError::Number, right), wrong);
        }
        for text in ["T2 weighted", "3.5 cm", "this one", "L5"] {
            assert_eq!(with_error(MedicalError::Number, text), "", "{text}");
        }
    }

    #[test]
    fn organs_and_modalities_are_replaced() {
        assert_eq!(with_error(MedicalError::Organ, "An enlarged liver"), "An enlarged lung");
        assert_eq!(
            with_error(MedicalError::Organ, "Both kidneys and brain"),
            "Both hearts and brain"
        );
        let changed = insert_error(MedicalError::Organ, "Liver", "Lung or kidney?");
        assert_eq!(changed.as_deref(), Some("Brain"));
        assert_eq!(with_error(MedicalError::Organ, "hepatic vein"), "pulmonary vein");
        assert_eq!(
            with_error(MedicalError::Modality, "This is a CT image."),
            "This is an MRI image."
        );
        assert_eq!(with_error(MedicalError::Modality, "An MRI"), "An X-ray");
        assert_eq!(with_error(MedicalError::Modality, "an x-ray"), "an ultrasound");
        assert_eq!(with_error(MedicalError::Modality, "A radiograph"), "An ultrasound");
        assert_eq!(with_error(MedicalError::Modality, "a histology image"), "a CT image");
        assert_eq!(with_error(MedicalError::Modality, "a mass"), "");
    }
}
