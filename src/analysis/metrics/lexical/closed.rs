//! Closed questions: questions with a short list of possible answers, for example yes and no.

use serde_json::{Map, Value};

use super::words::words;

/// Returns true for a closed question: from `answer_type` in the metadata, otherwise if the
/// reference is yes or no. `None` if neither is known.
pub fn is_closed(meta: &Map<String, Value>, reference: Option<&str>) -> Option<bool> {
    let answer_type = meta.get("answer_type").and_then(Value::as_str);
    match answer_type.map(|kind| kind.trim().to_lowercase()).as_deref() {
        Some("closed") => Some(true),
        Some("open") => Some(false),
        _ => reference.map(|text| parse_yes_no(&words(text)).is_some()),
    }
}

/// Returns true if an answer to a closed question is correct. For a yes/no reference, the first yes
/// or no in the answer counts; an answer with neither is wrong. Any other reference must occur in
/// the answer as consecutive words.
pub(crate) fn is_correct(answer: &[String], reference: &[String]) -> bool {
    if let Some(expected) = parse_yes_no(reference) {
        let first = answer.iter().find_map(|word| stated_yes_no(word));
        return first == Some(expected);
    }
    answer.windows(reference.len().max(1)).any(|part| part == reference)
}

/// Returns the answer if the text is only yes or no.
fn parse_yes_no(words: &[String]) -> Option<bool> {
    match words {
        [word] => stated_yes_no(word),
        _ => None,
    }
}

fn stated_yes_no(word: &str) -> Option<bool> {
    match word {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn correct(answer: &str, reference: &str) -> bool {
        is_correct(&words(answer), &words(reference))
    }

    /// Published code searches for the letters `no` anywhere, for example in "normal", "not" and
    /// "noted".
    #[test]
    fn first_yes_or_no_word_counts() {
        assert!(correct("Yes, it is.", "yes"));
        assert!(correct("No. Nothing abnormal.", "No"));
        assert!(!correct("There is no fracture, yes.", "yes"));
        assert!(!correct("A normal chest is noted.", "no"));
        assert!(!correct("", "no"));
        assert!(correct("It is an MRI of the left lung.", "Left lung"));
        assert!(!correct("It is the left upper lung.", "left lung"));
        assert!(!correct("CT", "MRI"));
    }

    #[test]
    fn answer_type_defines_closed_questions() {
        let meta = |kind: &str| Map::from_iter([("answer_type".to_owned(), kind.into())]);
        assert_eq!(is_closed(&meta("CLOSED "), Some("left")), Some(true));
        assert_eq!(is_closed(&meta("OPEN"), Some("yes")), Some(false));
        assert_eq!(is_closed(&Map::new(), Some("Yes.")), Some(true));
        assert_eq!(is_closed(&meta("other"), Some("yes, left")), Some(false));
        assert_eq!(is_closed(&Map::new(), None), None);
    }
}
