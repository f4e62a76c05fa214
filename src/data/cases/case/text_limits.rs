//! Limits on the responses and texts of a case, checked before any text is tokenised.

/// Maximum length of a question, a response or a reference in bytes.
///
/// About 65,000 tokens of English, more than the context of the panels' models. Tokenising takes
/// about 200 bytes of memory for each byte of text.
pub(crate) const MAX_TEXT_BYTES: usize = 256 << 10;
/// Maximum length of the name of a model or the id of a case in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 4 << 10;
/// Maximum number of responses of a case, and of models of answers files.
pub(crate) const MAX_RESPONSES: usize = 4096;
/// Memory of the reference and the other fields of a case that is always accepted, in bytes.
const SMALL_FIELDS_BYTES: usize = 4 << 10;
/// Maximum memory of these fields in the records of all pairs of a case, in bytes.
const MAX_FIELDS_BYTES: usize = 16 << 20;

/// Checks the reference, `meta` and unknown fields, which each record of a case repeats. `bytes` is
/// their size in memory.
///
/// # Errors
/// They would make the records of this many responses too large.
pub(crate) fn check_repeated_fields(bytes: usize, responses: usize) -> Result<(), String> {
    let records = (responses.saturating_mul(responses.saturating_sub(1)) / 2).max(1);
    if bytes <= SMALL_FIELDS_BYTES || bytes.saturating_mul(records) <= MAX_FIELDS_BYTES {
        return Ok(());
    }
    Err(format!(
        "the reference, `meta` and unknown fields take {bytes} bytes of memory in each of up to \
         {records} records, the limit is {MAX_FIELDS_BYTES} in all\nhint: shorten them"
    ))
}

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
