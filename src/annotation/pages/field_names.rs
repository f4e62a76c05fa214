//! Names of the fields of forms, and the limit of texts.

/// Which page the form belongs to.
pub(crate) const PAGE: &str = "page";
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

/// Center of the window of a DICOM image.
pub(crate) const CENTER: &str = "center";
/// Width of the window of a DICOM image.
pub(crate) const WIDTH: &str = "width";
/// A window as center and width with a comma between them, or that of the file.
pub(crate) const WINDOW: &str = "window";

/// The decision about an unresolved pair: [`OWN`] or a number of [`accept_value`].
pub(crate) const DECISION: &str = "decision";
/// Value of the decision for an own evaluation.
pub(crate) const OWN: &str = "own";
/// Start of the value of the decision for a suggestion.
const ACCEPT: &str = "accept-";

/// Returns the value of the decision for a suggestion.
pub(crate) fn accept_value(number: usize) -> String {
    format!("{ACCEPT}{number}")
}

/// Returns the number of the suggestion of a value of the decision.
pub(crate) fn accepted_number(value: &str) -> Option<usize> {
    value.strip_prefix(ACCEPT)?.parse().ok()
}

/// Returns the name of the field of an analysis.
pub(crate) fn analysis_field(criterion: usize, response: usize) -> String {
    format!("analysis-{criterion}-{response}")
}

/// Maximum length of an analysis, in characters.
pub(crate) const MAX_ANALYSIS: usize = 1000;

/// Returns the name of the field of a score.
pub(crate) fn score_field(criterion: usize, response: usize) -> String {
    format!("score-{criterion}-{response}")
}

/// Maximum length of a comment or reason, in characters.
pub(crate) const MAX_TEXT: usize = 4000;

/// Returns a text that somebody typed, without spaces around it and within the limit. Browsers send two
/// characters for a line break, and count one.
pub(crate) fn limit_text(text: &str) -> String {
    text.replace("\r\n", "\n").trim().chars().take(MAX_TEXT).collect()
}

/// Returns an analysis that somebody typed, on one line, without spaces around it and within the limit.
pub(crate) fn limit_analysis(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(MAX_ANALYSIS).collect()
}
