//! Limits on the texts of a case, checked before any text is tokenised.

/// Maximum length of a question, a response or a reference in bytes.
///
/// About 65,000 tokens of English, more than the context of the panels' models. Tokenising takes
/// about 200 bytes of memory for each byte of text.
pub(crate) const MAX_TEXT_BYTES: usize = 256 << 10;
/// Maximum length of the name of a model or the id of a case in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 4 << 10;

/// Checks the length of a text.
///
/// # Errors
/// The text is longer than [`MAX_TEXT_BYTES`]. `name` names it in the message.
pub(crate) fn check_text_length(text: &str, name: &str) -> Result<(), String> {
    check_length(text, name, MAX_TEXT_BYTES)
}

/// Checks the length of a name or id.
///
/// # Errors
/// It is longer than [`MAX_NAME_BYTES`]. `name` names it in the message.
pub(crate) fn check_name_length(text: &str, name: &str) -> Result<(), String> {
    check_length(text, name, MAX_NAME_BYTES)
}

fn check_length(text: &str, name: &str, limit: usize) -> Result<(), String> {
    if text.len() <= limit {
        return Ok(());
    }
    Err(format!(
        "{name} has {} bytes, the limit is {limit}\nhint: shorten it; check that the file is right",
        text.len()
    ))
}
