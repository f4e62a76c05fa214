//! Counts the causes of unscored records, in constant memory.
//!
//! Messages with the same cause differ only in ids, models, files and numbers. They are grouped by
//! the text without these.

use std::collections::HashMap;

use crate::judging::run::record::RecordSubject;

/// Maximum number of distinct causes. Further causes are not counted.
const MAX_CAUSES: usize = 64;

/// Maximum number of names that are removed from a message.
const MAX_NAMES: usize = 50;

/// Counts of causes.
#[derive(Clone, Debug, Default)]
pub struct UnscoredCauses {
    by_normalized_message: HashMap<String, UnscoredCause>,
}

/// A cause, with the message of its first record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnscoredCause {
    /// Number of records.
    pub records: u64,
    /// Message of the first record.
    pub first_message: String,
    /// Number of causes counted before this one.
    order: usize,
}

impl UnscoredCauses {
    /// Counts an unscored record.
    pub fn add(&mut self, subject: &RecordSubject, message: &str) {
        let order = self.by_normalized_message.len();
        let normalized = normalize_message(subject, message);
        if let Some(cause) = self.by_normalized_message.get_mut(&normalized) {
            cause.records += 1;
        } else if order < MAX_CAUSES {
            let cause = UnscoredCause { records: 1, first_message: message.to_owned(), order };
            self.by_normalized_message.insert(normalized, cause);
        }
    }

    /// Returns the most common cause; in a tie, the first one.
    pub fn most_common(&self) -> Option<&UnscoredCause> {
        let mut causes: Vec<&UnscoredCause> = self.by_normalized_message.values().collect();
        causes.sort_by_key(|cause| (std::cmp::Reverse(cause.records), cause.order));
        causes.first().copied()
    }
}

/// Removes the names and numbers of a record from its message.
fn normalize_message(subject: &RecordSubject, message: &str) -> String {
    let mut names: Vec<&str> = subject.pair.iter().flatten().map(String::as_str).collect();
    names.extend(subject.case.as_deref());
    names.extend(subject.image.as_ref().map(|image| image.name.as_str()));
    names.extend(subject.models.iter().map(String::as_str));
    names.retain(|name| !name.is_empty());
    names.truncate(MAX_NAMES);
    // Remove longer names first, because one name may contain another.
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let mut normalized = message.to_owned();
    for name in names {
        normalized = remove_name(&normalized, name);
    }
    normalized.retain(|c| !c.is_ascii_digit());
    normalized
}

/// Removes a name from a text where it is a separate word.
fn remove_name(text: &str, name: &str) -> String {
    let is_word_char = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let (mut remaining, mut end) = (String::new(), 0);
    for (start, _) in text.match_indices(name) {
        let (before, after) = (&text[..start], &text[start + name.len()..]);
        if !is_word_char(before.chars().next_back()) && !is_word_char(after.chars().next()) {
            remaining.push_str(&text[end..start]);
            end = start + name.len();
        }
    }
    remaining + &text[end..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::cases::InputProblem;
    use crate::judging::run::record::AffectedResponses;
    use crate::support::digest::Digest;

    fn subject(case: &str, pair: [&str; 2]) -> RecordSubject {
        let problem = InputProblem::parse_error("x.jsonl".as_ref(), 1, Some(case.to_owned()), "");
        let pair = AffectedResponses::Pair(pair.map(str::to_owned));
        RecordSubject::from_problem(&problem, pair, "x.jsonl".to_owned(), &Digest::sha256(b"j"))
    }

    #[test]
    fn most_common_cause_keeps_its_first_message() {
        let mut causes = UnscoredCauses::default();
        assert_eq!(causes.most_common(), None);
        causes.add(&subject("a", ["m", "n"]), "malformed JSON at column 7");
        for (case, model) in [("chest left", "m"), ("knee", "n"), ("c-17", "m")] {
            let message = format!("model {model} has no answer to question_id {case}");
            causes.add(&subject(case, ["m", "n"]), &message);
        }
        let most_common = causes.most_common().unwrap();
        assert_eq!(most_common.records, 3);
        let first = "model m has no answer to question_id chest left";
        assert_eq!(most_common.first_message, first);
    }

    #[test]
    fn number_of_causes_is_bounded() {
        let mut causes = UnscoredCauses::default();
        for i in 0..1000_u32 {
            let other: String = i.to_string().bytes().map(|b| char::from(b + 49)).collect();
            causes.add(&subject("x", ["m", "n"]), &other);
        }
        assert_eq!(causes.by_normalized_message.len(), MAX_CAUSES);
    }
}
