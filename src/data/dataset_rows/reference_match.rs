//! Whether a free answer agrees with the reference, as far as a rule can tell.

use crate::data::dataset_rows::answer_terms::{words, yes_no};

/// Whether an answer agrees with the reference; `None` if the rule cannot tell.
///
/// A closed question's answer is its first word "yes" or "no". For other references the answer
/// agrees if it contains the reference's words in their order: a rule of thumb, which misses
/// paraphrases and is fooled by negation.
pub fn agrees(answer_text: &str, reference: &str, closed: bool) -> Option<bool> {
    let words = words(answer_text);
    if closed && let Some(right) = yes_no(reference) {
        return words
            .iter()
            .find_map(|word| yes_no(word))
            .map(|said| said == right);
    }
    let wanted = self::words(reference);
    if wanted.is_empty() {
        return None;
    }
    Some(words.windows(wanted.len()).any(|part| part == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_yes_or_no_decides() {
        assert_eq!(
            agrees("Yes, the image shows no fracture.", "yes", true),
            Some(true)
        );
        assert_eq!(
            agrees("There is no fracture, yes.", "Yes", true),
            Some(false)
        );
        assert_eq!(agrees("No.", "no", true), Some(true));
        assert_eq!(agrees("The image shows a nodule.", "yes", true), None);
        assert_eq!(agrees("Normal findings, noted yesterday", "no", true), None);
    }

    #[test]
    fn open_answers_contain_the_reference() {
        assert_eq!(
            agrees("It is an MRI of the left lungs.", "Left Lung", false),
            Some(true)
        );
        assert_eq!(agrees("It is the lung.", "Left Lung", false), Some(false));
        assert_eq!(agrees("The heart.", "Heart", true), Some(true));
        assert_eq!(agrees("Anything", "", false), None);
    }
}
