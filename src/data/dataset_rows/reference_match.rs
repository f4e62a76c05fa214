//! Rule-based agreement of a free answer with the reference.

use crate::data::dataset_rows::answer_terms::{words, yes_no};

/// Returns whether an answer agrees with the reference, or `None` if the rule does not apply.
///
/// For closed questions with a yes/no reference, the first "yes" or "no" in the answer counts. For
/// other references, the answer agrees if it contains the words of the reference in order. This
/// heuristic misses paraphrases and ignores negation.
pub fn agrees(answer_text: &str, reference: &str, closed: bool) -> Option<bool> {
    let words = words(answer_text);
    if closed && let Some(right) = yes_no(reference) {
        return words
            .iter()
            .find_map(|word| yes_no(word))
            .map(|answer| answer == right);
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
    fn first_yes_or_no_decides() {
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
    fn open_answers_must_contain_reference() {
        assert_eq!(
            agrees("It is an MRI of the left lungs.", "Left Lung", false),
            Some(true)
        );
        assert_eq!(agrees("It is the lung.", "Left Lung", false), Some(false));
        assert_eq!(agrees("The heart.", "Heart", true), Some(true));
        assert_eq!(agrees("Anything", "", false), None);
    }
}
