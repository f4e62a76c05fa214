//! Compares short answers by meaning.
//!
//! Spelling varies in the data sets: "Xray" and "x-ray", "the lungs" and "Lung", "Barin" and
//! "Brain". A wrong answer must differ from the right one in more than its spelling.

use std::collections::BTreeSet;

/// Words without meaning in a short answer.
const FILLERS: [&str; 19] = [
    "a", "an", "the", "of", "in", "on", "at", "is", "are", "it", "this", "with", "and", "to",
    "lobe", "side", "region", "area", "part",
];

/// Words that negate an answer.
const NEGATIONS: [&str; 5] = ["no", "not", "without", "non", "absent"];

/// Synonyms in these data sets. The first of each group is the canonical form.
const SYNONYMS: [&[&str]; 23] = [
    &["0", "zero", "none"],
    &["1", "one", "single", "solitary"],
    &["2", "two", "pair"],
    &["3", "three"],
    &["4", "four"],
    &["5", "five"],
    &["6", "six"],
    &["7", "seven"],
    &["8", "eight"],
    &["9", "nine"],
    &["10", "ten"],
    &["mri", "mr"],
    &["xray", "radiograph", "radiography", "cxr"],
    &["transverse", "axial"],
    &["gray", "grey"],
    &["gastrointestinal", "gi"],
    &["posteroanterior", "pa"],
    &["anteroposterior", "ap"],
    &["brain", "cerebral", "cerebrum"],
    &["lung", "pulmonary"],
    &["bilateral", "both"],
    &["tumor", "tumour"],
    &["bowel", "intestine"],
];

/// Splits a text into canonical words: lower case, singular, in order.
///
/// "x-ray", "x ray" and "xray" are one word; other hyphens separate words.
pub(super) fn canonical_words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace("x-ray", "xray").replace("x ray", "xray");
    let text = text.replace("ct scan", "ct").replace("hyper dense", "hyperdense");
    let text = text.replace("hypo dense", "hypodense");
    let split = text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
    split.map(|word| canonical(singular(word))).collect()
}

/// Returns the set of meaningful words, or of all words if none is meaningful.
pub(super) fn terms(text: &str) -> BTreeSet<String> {
    let words = canonical_words(text);
    let meaningful: BTreeSet<String> =
        words.iter().filter(|w| !FILLERS.contains(&w.as_str())).cloned().collect();
    if meaningful.is_empty() { words.into_iter().collect() } else { meaningful }
}

/// Normalises an answer: its canonical words, separated by single spaces.
pub(super) fn normalize(text: &str) -> String {
    canonical_words(text).join(" ")
}

/// Returns `Some(true)` for "yes", `Some(false)` for "no" and `None` for any other answer.
pub(crate) fn parse_yes_no(text: &str) -> Option<bool> {
    match normalize(text).as_str() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// Returns true if the words of one answer include those of the other. Such an answer is not
/// clearly wrong.
pub(super) fn overlaps(a: &BTreeSet<String>, b: &BTreeSet<String>) -> bool {
    let is_negated = |words: &BTreeSet<String>| NEGATIONS.iter().any(|n| words.contains(*n));
    if is_negated(a) != is_negated(b) {
        return false;
    }
    let includes = |many: &BTreeSet<String>, few: &BTreeSet<String>| {
        few.iter().all(|word| many.iter().any(|other| is_same_word(word, other)))
    };
    includes(b, a) || includes(a, b)
}

/// Returns true if two words are equal, or if they have at least five bytes and differ by one
/// typing error.
fn is_same_word(a: &str, b: &str) -> bool {
    a == b
        || (a.len().min(b.len()) >= 5 && a.len().abs_diff(b.len()) <= 1 && is_one_edit_apart(a, b))
}

/// Returns true if two words differ by one inserted, missing or changed letter, or by two swapped
/// letters.
fn is_one_edit_apart(a: &str, b: &str) -> bool {
    let prefix = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let (x, y) = (suffix_from(a.as_bytes(), prefix), suffix_from(b.as_bytes(), prefix));
    let is_swap = match (x, y) {
        ([x0, x1, x_rest @ ..], [y0, y1, y_rest @ ..]) => x0 == y1 && x1 == y0 && x_rest == y_rest,
        _ => false,
    };
    is_swap
        || suffix_from(x, 1) == suffix_from(y, 1)
        || x == suffix_from(y, 1)
        || suffix_from(x, 1) == y
}

fn suffix_from(bytes: &[u8], start: usize) -> &[u8] {
    bytes.get(start..).unwrap_or_default()
}

fn singular(word: &str) -> &str {
    if word.len() <= 3 || word.ends_with("ss") || word.ends_with("is") || word.ends_with("us") {
        return word;
    }
    word.strip_suffix('s').unwrap_or(word)
}

fn canonical(word: &str) -> String {
    let group = SYNONYMS.iter().find(|group| group.contains(&word));
    group.and_then(|g| g.first()).map_or(word, |first| first).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn do_overlap(a: &str, b: &str) -> bool {
        overlaps(&terms(a), &terms(b))
    }

    #[test]
    fn spelling_variants_overlap() {
        assert_eq!(normalize("Transverse  Plane"), normalize("axial plane."));
        for (a, b) in [
            ("Yes.", "yes"),
            ("the Lungs", "Lung"),
            ("Chest X-Ray", "x ray"),
            ("Barin", "Brain"),
            ("homogenous", "homogeneous"),
            ("Brain Edema, Brain Tumor", "Brain Tumor, Brain Edema"),
            ("Brain Edema", "Brain Edema, Brain Tumor"),
            ("two", "2"),
            ("Grey", "gray"),
            ("abcess", "abscess"),
            ("Lower Right Lobe", "Lower Right Lung"),
        ] {
            assert!(do_overlap(a, b), "{a} / {b}");
        }
    }

    #[test]
    fn different_meanings_do_not_overlap() {
        for (a, b) in [
            ("Left Lung", "Right Lung"),
            ("T1", "T2"),
            ("hypodense", "hyperdense"),
            ("yes", "no"),
            ("1", "2"),
            ("Liver", "Spleen"),
            ("Contrast CT", "non-contrast CT"),
            ("with contrast", "without contrast"),
        ] {
            assert!(!do_overlap(a, b), "{a} / {b}");
        }
        assert_eq!(
            (parse_yes_no("Yes. "), parse_yes_no("NO"), parse_yes_no("maybe")),
            (Some(true), Some(false), None)
        );
    }
}
