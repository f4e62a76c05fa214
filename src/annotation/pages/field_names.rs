//! Names of the fields of forms, and the limit of texts.

/// What the rater wants: `save`, `submit` or `skip`.
pub(crate) const ACTION: &str = "action";
/// The better response: `first`, `second` or `equal`, as the rater sees them.
pub(crate) const PREFERENCE: &str = "preference";
/// Comment of the rater.
pub(crate) const COMMENT: &str = "comment";
/// Why the rater skips the case.
pub(crate) const REASON: &str = "reason";
/// When the page was opened, in seconds since 1970.
pub(crate) const OPENED: &str = "opened";

/// Returns the name of the field of a score.
pub(crate) fn score_field(criterion: usize, response: usize) -> String {
    format!("score-{criterion}-{response}")
}

/// Maximum length of a comment or reason, in characters.
pub(crate) const MAX_TEXT: usize = 4000;

/// Returns a text that somebody typed, without spaces around it and within the limit.
pub(crate) fn limit_text(text: &str) -> String {
    text.trim().chars().take(MAX_TEXT).collect()
}
