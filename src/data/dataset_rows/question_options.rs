//! Extracts the options of a question such as "heart or lung?" or "T1, T2, or FLAIR?".

use crate::data::dataset_rows::answer_terms::{overlaps, terms};

/// Maximum number of words of an option. Longer options cannot be separated from the question.
const MAX_OPTION_WORDS: usize = 3;

/// Returns the options of a question other than the reference answer. The list is empty if the
/// question has no options or if the reference is not one of them.
pub(super) fn other_options(question: &str, reference: &str) -> Vec<String> {
    let text = question.trim().trim_end_matches(['?', '.', ' ']);
    let Some((before, after)) = text.rsplit_once(" or ") else {
        return Vec::new();
    };
    // All options are assumed to have as many words as the reference answer.
    let word_count = reference.split_whitespace().count().max(1);
    if word_count > MAX_OPTION_WORDS {
        return Vec::new();
    }
    let mut parts: Vec<&str> = before.split(',').map(str::trim).filter(|s| !s.is_empty()).collect();
    let mut options = Vec::new();
    // "Which is bigger, lung, liver or heart": the first part is the question itself.
    // "Is it solid or cystic": the first part ends with an option.
    if parts.len() > 1 {
        parts.remove(0);
        options.extend(parts.into_iter().map(|s| first_words(s, word_count)));
    } else {
        options.extend(parts.first().map(|s| last_words(s, word_count)));
    }
    options.push(first_words(after, word_count));
    let reference_terms = terms(reference);
    let is_reference = |option: &String| overlaps(&terms(option), &reference_terms);
    if !options.iter().any(is_reference) && !ends_with_reference(before, &reference_terms) {
        return Vec::new();
    }
    options.retain(|option| !option.is_empty() && !is_reference(option));
    options.into_iter().map(|option| complete_option(option, reference, before)).collect()
}

/// Appends the last word of the reference to an option that lacks it: for "gray or white matter"
/// and the reference "white matter", the option "gray" becomes "gray matter". An option is not
/// changed if the word occurs in the text before "or".
fn complete_option(option: String, reference: &str, before: &str) -> String {
    let words: Vec<_> = reference.split_whitespace().collect();
    match words.last() {
        Some(&last_word) if words.len() > 1 && option.split_whitespace().count() < words.len() => {
            let last_word = last_word.to_lowercase();
            if before.to_lowercase().contains(&last_word) {
                option
            } else {
                format!("{option} {last_word}")
            }
        }
        _ => option,
    }
}

/// Returns true if the part before "or" ends with the reference answer.
fn ends_with_reference(before: &str, reference_terms: &std::collections::BTreeSet<String>) -> bool {
    terms(&last_words(before, reference_terms.len())).is_subset(reference_terms)
}

/// Words that are removed from the start of an option.
const LEADING_WORDS: [&str; 6] = ["a", "an", "the", "in", "on", "either"];

/// Returns the first `n` words after any [`LEADING_WORDS`].
fn first_words(text: &str, n: usize) -> String {
    let words =
        text.split_whitespace().skip_while(|w| LEADING_WORDS.contains(&w.to_lowercase().as_str()));
    words.take(n).collect::<Vec<_>>().join(" ")
}

/// Returns the last `n` words without [`LEADING_WORDS`] at their start.
fn last_words(text: &str, n: usize) -> String {
    let all: Vec<_> = text.split_whitespace().collect();
    let tail = all.get(all.len().saturating_sub(n)..).unwrap_or_default();
    first_words(&tail.join(" "), n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_option_is_found() {
        for (question, reference, other) in [
            ("Which organ is abnormal, heart or lung?", "Heart", "lung"),
            ("Is the lesion seen in the gray or white matter?", "White matter", "gray matter"),
            ("Is this a solid or cystic lesion?", "Solid", "cystic"),
            ("Is this a contrast CT or a non-contrast CT?", "Contrast CT", "non-contrast CT"),
            ("Is the lung on the right or left side?", "Left side", "right side"),
            ("Is this an AP or PA film?", "PA", "AP"),
        ] {
            let found = other_options(question, reference);
            assert_eq!(found, [other], "{question}");
        }
        let three =
            other_options("Which is the biggest in this image,lung,liver or heart?", "Lung");
        assert_eq!(three, ["liver", "heart"]);
    }

    #[test]
    fn question_without_choice_has_no_options() {
        assert!(other_options("Is the lung healthy?", "Yes").is_empty());
        assert!(other_options("Is it in the liver or spleen?", "Both kidneys").is_empty());
        let long = other_options(
            "Is it inside the patient or on the patient's skin?",
            "on the patient's skin",
        );
        assert!(long.is_empty(), "{long:?}");
    }
}
