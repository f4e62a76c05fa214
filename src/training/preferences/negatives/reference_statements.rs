//! Removal of what an analysis states about the reference (`HDCEval` §3.3, equation 6).
//!
//! An analysis is cut into sentences, and a sentence into clauses: at a semicolon or a colon, and
//! before a conjunction such as `but`, `while` or `because`. A clause states reference information if
//!
//! - it names the reference: "the reference", "the correct answer", "the ground truth", …, or
//! - it repeats the reference answer, in words that the response does not have: all content words of
//!   a reference of up to four, else at least half of them. References without content words, such
//!   as "yes" and "no", count only if they are named.
//!
//! Clauses that do are left out. The rest of a sentence starts with a capital letter and ends as the
//! sentence did. An analysis that consists of reference information alone stays as it is.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::data::phantoms::text::response_writer::without_finding;

/// Names of the reference.
static NAMES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:reference|ground[- ]truth|gold(?:[- ]standard)?|(?:correct|expected|true|known|actual|standard) answer)\b",
    )
    .ok()
});
/// Boundaries of clauses within a sentence.
static BOUNDARIES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i);\s+|:\s+|\s+[–—]\s+|,?\s+(?:but|while|whereas|because|since|although|though|which|and thus|and so|so)\s+|,\s+(?:and|as|therefore|thus|hence)\s+",
    )
    .ok()
});
/// Ends of sentences.
static SENTENCE_ENDS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[.!?]+(?:\s+|$)").ok());

/// Words that carry no content.
const STOP_WORDS: [&str; 60] = [
    "a", "an", "and", "are", "as", "at", "be", "been", "both", "but", "by", "can", "did", "do",
    "does", "for", "from", "had", "has", "have", "he", "her", "his", "in", "into", "is", "it",
    "its", "no", "none", "not", "of", "on", "one", "only", "or", "she", "so", "some", "such",
    "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those",
    "to", "was", "were", "which", "with", "within", "without", "yes", "you",
];

/// Largest number of content words of a reference that a clause must repeat completely.
const SHORT_REFERENCE: usize = 4;

/// Returns an analysis without its statements of the reference; `None` if it has none, or nothing
/// else. `response`: the response that the analysis is about.
pub(super) fn without_reference(
    analysis: &str,
    reference: Option<&str>,
    response: Option<&str>,
) -> Option<String> {
    if let Some(shortened) = without_finding(analysis) {
        return Some(shortened);
    }
    let reference = reference.map(content_words).unwrap_or_default();
    let response = response.map(content_words).unwrap_or_default();
    let (mut kept_sentences, mut removed) = (Vec::new(), false);
    for sentence in sentences(analysis) {
        let clauses = clauses(sentence.text);
        let kept: Vec<&Clause> = clauses
            .iter()
            .filter(|clause| !states_reference(clause.text, &reference, &response))
            .collect();
        removed |= kept.len() < clauses.len();
        if kept.len() == clauses.len() {
            kept_sentences.push(format!("{}{}", sentence.text, sentence.end));
        } else if !kept.is_empty() {
            kept_sentences.push(join(&kept) + sentence.end);
        }
    }
    let shortened = kept_sentences.join(" ");
    (removed && shortened.chars().any(char::is_alphanumeric)).then_some(shortened)
}

/// Sentence without its end, and the end without white space.
struct Sentence<'a> {
    text: &'a str,
    end: &'a str,
}

/// Clause with the separator before it.
struct Clause<'a> {
    separator: &'a str,
    text: &'a str,
}

fn sentences(text: &str) -> Vec<Sentence<'_>> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for end in SENTENCE_ENDS.iter().flat_map(|ends| ends.find_iter(text)) {
        let sentence = Sentence { text: text[start..end.start()].trim(), end: end.as_str().trim() };
        start = end.end();
        sentences.push(sentence);
    }
    sentences.push(Sentence { text: text[start..].trim(), end: "" });
    sentences.retain(|sentence| !sentence.text.is_empty());
    sentences
}

fn clauses(sentence: &str) -> Vec<Clause<'_>> {
    let mut clauses = Vec::new();
    let (mut start, mut separator) = (0, "");
    for boundary in BOUNDARIES.iter().flat_map(|boundaries| boundaries.find_iter(sentence)) {
        clauses.push(Clause { separator, text: &sentence[start..boundary.start()] });
        (start, separator) = (boundary.end(), boundary.as_str());
    }
    clauses.push(Clause { separator, text: &sentence[start..] });
    clauses
}

/// Joins the clauses of a sentence that are kept.
fn join(clauses: &[&Clause]) -> String {
    let mut text = String::new();
    for clause in clauses {
        if text.is_empty() {
            let mut characters = clause.text.trim().chars();
            text.extend(characters.next().into_iter().flat_map(char::to_uppercase));
            text.push_str(characters.as_str());
        } else {
            text.push_str(clause.separator);
            text.push_str(clause.text);
        }
    }
    text.trim_end_matches([',', ';', ':', ' ']).to_owned()
}

/// Returns the lower-case words of a text that carry content, without a plural s.
fn content_words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    let content =
        words.filter(|word| !word.is_empty() && STOP_WORDS.binary_search(&word.as_str()).is_err());
    let singular = content.map(|word| match word.strip_suffix('s') {
        Some(stem) if stem.len() > 3 && !stem.ends_with('s') => stem.to_owned(),
        _ => word,
    });
    singular.collect()
}

fn states_reference(
    clause: &str,
    reference: &BTreeSet<String>,
    response: &BTreeSet<String>,
) -> bool {
    if NAMES.as_ref().is_some_and(|names| names.is_match(clause)) {
        return true;
    }
    let clause = content_words(clause);
    let repeated: Vec<&String> = reference.intersection(&clause).collect();
    let needed = match reference.len() {
        0 => return false,
        n if n <= SHORT_REFERENCE => n,
        n => n.div_ceil(2),
    };
    repeated.len() >= needed && repeated.iter().any(|word| !response.contains(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_that_state_the_reference_are_removed() {
        let check = |analysis: &str, reference: &str, response: &str, expected: Option<&str>| {
            let shortened = without_reference(analysis, Some(reference), Some(response));
            assert_eq!(shortened.as_deref(), expected, "{analysis}");
        };
        assert!(STOP_WORDS.is_sorted());
        check(
            "The response names the left lung. The reference answer is the right lung, so it is wrong.",
            "right lung",
            "The left lung.",
            Some("The response names the left lung. It is wrong."),
        );
        check(
            "It claims a fracture, while the image has pneumothorax; this could harm the patient.",
            "Pneumothorax",
            "There is a fracture.",
            Some("It claims a fracture; this could harm the patient."),
        );
        // What the response says itself is no information from the reference.
        check("It rightly names a pneumothorax.", "Pneumothorax", "A pneumothorax.", None);
        // A long reference counts if half of it is repeated.
        check(
            "Too short. An enlarged heart with bilateral pleural effusion is visible.",
            "Enlarged heart, bilateral pleural effusions and pulmonary oedema in both lungs",
            "Normal.",
            Some("Too short."),
        );
        // Yes and no count only by name.
        check("There is no reason given.", "No", "Yes.", None);
        check(
            "The answer is yes, but the correct answer is no.",
            "No",
            "Yes.",
            Some("The answer is yes."),
        );
        // Nothing would be left.
        check("The reference says otherwise.", "No", "Yes.", None);
        check("Clear and polite.", "Right lung", "Left.", None);
        let unnamed = without_reference("Good, whereas the ground truth differs.", None, None);
        assert_eq!(unnamed.as_deref(), Some("Good."));
        let finding = "The image shows right; the response claims left: they differ.";
        let finding = without_reference(finding, None, None);
        assert_eq!(finding.as_deref(), Some("The response claims left: they differ."));
        assert_eq!(without_reference("3.5 cm é; ü", Some("—"), None), None);
    }
}
