//! What a model writes when it reviews a suggestion.

use crate::training::introspection::discussion::discussion_round::SuggestionReview;

/// The form that the answer must have.
pub(super) const ANSWER_FORM: &str = "Reason: <one or two sentences; if the evaluation is not acceptable, what has to change>\n\
     Acceptable: <yes or no>";
/// Text before the reason, in lower case.
const REASON: &str = "reason:";
/// Text before the yes or no of the reviewer, in lower case.
const ACCEPTABLE: &str = "acceptable:";

/// Reads an answer. Ignores letter case, Markdown markers and text around the form.
pub(super) fn parse_review(answer: &str) -> SuggestionReview {
    let plain = answer.replace(['*', '#', '`'], "");
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    // Only ASCII letters change, so byte offsets equal those of `plain`.
    let lower = plain.to_ascii_lowercase();
    let malformed =
        || SuggestionReview::missing("the answer has no line `Acceptable: yes` or `no`".to_owned());
    let Some(end) = lower.rfind(ACCEPTABLE) else {
        return malformed();
    };
    let rest = lower.get(end + ACCEPTABLE.len()..).unwrap_or_default().trim_start();
    let word: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
    let accepts = match word.as_str() {
        "yes" => true,
        "no" => false,
        _ => return malformed(),
    };
    let start = lower.find(REASON).map_or(0, |start| start + REASON.len());
    let reason = plain.get(start..end).unwrap_or_default().trim().to_owned();
    if !accepts && reason.is_empty() {
        return SuggestionReview::missing("the reviewer gives no reason".to_owned());
    }
    SuggestionReview { accepts: Some(accepts), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_leniently_and_never_guessed() {
        let read = |text: &str| {
            let review = parse_review(text);
            (review.accepts, review.reason)
        };
        let yes = "Sure.\n**Reason:** The finding is\n there.\n**Acceptable:** Yes.";
        assert_eq!(read(yes), (Some(true), "The finding is there.".to_owned()));
        let no = "reason: Not a stent.\nACCEPTABLE: no, it must change";
        assert_eq!(read(no), (Some(false), "Not a stent.".to_owned()));
        assert_eq!(read("Acceptable: yes"), (Some(true), String::new()));
        for text in ["", "yes", "Acceptable: perhaps", "Acceptable: nothing", "Acceptable: no"] {
            assert_eq!(read(text).0, None, "{text}");
        }
    }
}
