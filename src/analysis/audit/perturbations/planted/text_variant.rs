//! A generated text, with the name of its template.

/// A generated text and the name of its template.
pub(super) struct TextVariant {
    pub(super) text: String,
    pub(super) template: String,
}

/// Repeats a text and cuts it, so that it has exactly `length` characters.
pub(super) fn fit(text: &str, length: usize) -> String {
    if text.is_empty() {
        return String::new();
    }
    text.chars().cycle().take(length).collect()
}
