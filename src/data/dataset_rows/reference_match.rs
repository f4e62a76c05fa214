//! Rule-based agreement of a free answer with the reference.

use crate::data::dataset_rows::answer_terms::{canonical_words, parse_yes_no};

/// Returns whether an answer agrees with the reference, or `None` if the rule does not apply.
///
/// For closed questions with a yes/no reference, the first "yes" or "no" in the answer counts. For
/// other references, the answer agrees if it contains the words of the reference in order. This
/// heuristic misses paraphrases and ignores negation.
pub fn matches_reference(answer_text: &str, reference: &str, closed: bool) -> Option<bool> {
    let answer_words = canonical_words(answer_text);
    if closed && let Some(right) = parse_yes_no(reference) {
        return answer_words
            .iter()
            .find_map(|word| parse_yes_no(word))
            .map(|answer| answer == right);
    }
    let reference_words = canonical_words(reference);
    if reference_words.is_empty() {
        return None;
    }
    Some(answer_words.windows(reference_words.len()).any(|part| part == reference_words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_yes_or_no_decides() {
        assert_eq!(matches_reference("Yes, the image shows no fracture.", "yes", true), Some(true));
        assert_eq!(matches_reference("There is no fracture, yes.", "Yes", true), Some(false));
        assert_eq!(matches_reference("No.", "no", true), Some(true));
        assert_eq!(matches_reference("The image shows a nodule.", "yes", true), None);
        assert_eq!(matches_reference("Normal findings, noted yesterday", "no", true), None);
    }

    #[test]
    fn open_answers_must_contain_reference() {
        assert_eq!(
            matches_reference("It is an MRI of the left lungs.", "Left Lung", false),
            Some(true)
        );
        assert_eq!(matches_reference("It is the lung.", "Left Lung", false), Some(false));
        assert_eq!(matches_reference("The heart.", "Heart", true), Some(true));
        assert_eq!(matches_reference("Anything", "", false), None);
    }
}
