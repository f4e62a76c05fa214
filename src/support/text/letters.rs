//! The case of the first letter of a text.

/// Returns a text with a capital first letter.
pub(crate) fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |c| c.to_uppercase().chain(letters).collect())
}

/// Converts the first letter to lower case, for use after "Yes,"; keeps the pronoun "I".
pub(crate) fn lower_first_letter(text: &str) -> String {
    if text.starts_with("I ") {
        return text.to_owned();
    }
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |c| c.to_lowercase().chain(letters).collect())
}
