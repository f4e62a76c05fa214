//! Passages: parts of a text, in words, each of which overlaps the previous one.

use super::manifest::IndexSettings;

/// Splits a text into passages, with single spaces between the words. A text without words has
/// none.
pub(super) fn split_passages(text: &str, settings: &IndexSettings) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let size = settings.passage_words.max(1);
    // At least one new word per passage.
    let overlap = settings.overlap_words.min(size - 1);
    let mut passages = Vec::new();
    let mut start = 0;
    while start < words.len() {
        let end = words.len().min(start + size);
        passages.push(words.get(start..end).unwrap_or_default().join(" "));
        if end == words.len() {
            break;
        }
        start = end - overlap;
    }
    passages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_overlap_and_cover_the_text() {
        let split = |text: &str, passage_words, overlap_words| {
            let settings =
                IndexSettings { passage_words, overlap_words, ..IndexSettings::default() };
            split_passages(text, &settings)
        };
        assert_eq!(split("a b  c\nd e f g", 3, 1), ["a b c", "c d e", "e f g"]);
        assert_eq!(split("a b c d", 3, 0), ["a b c", "d"]);
        assert_eq!(split("a b c", 3, 2), ["a b c"]);
        // An overlap as long as a passage would never end.
        assert_eq!(split("a b c", 1, 9), ["a", "b", "c"]);
        assert!(split(" \n", 3, 1).is_empty());
    }
}
