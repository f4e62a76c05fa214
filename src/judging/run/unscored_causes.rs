//! Counts the causes of unscored records, in constant memory.
//!
//! Messages with the same cause differ in ids, models, files and lines. They are grouped by the text that
//! remains without these.

use std::collections::HashMap;

use crate::judging::run::record::RecordSubject;

/// Maximum number of distinct causes; further ones are not counted.
const MAX_CAUSES: usize = 64;

/// Counts of causes.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    kinds: HashMap<String, Cause>,
}

/// A cause, with the message of its first record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Number of records.
    pub records: u64,
    /// Message of the first record.
    pub first: String,
    /// Number of causes seen before it.
    order: usize,
}

impl Causes {
    /// Counts an unscored record.
    pub fn add(&mut self, subject: &RecordSubject, message: &str) {
        let order = self.kinds.len();
        let kind = normalize_message(subject, message);
        if let Some(cause) = self.kinds.get_mut(&kind) {
            cause.records += 1;
        } else if order < MAX_CAUSES {
            let cause = Cause {
                records: 1,
                first: message.to_owned(),
                order,
            };
            self.kinds.insert(kind, cause);
        }
    }

    /// Returns the most common cause; the earlier one of a tie.
    pub fn most_common(&self) -> Option<&Cause> {
        let mut causes: Vec<&Cause> = self.kinds.values().collect();
        causes.sort_by_key(|cause| (std::cmp::Reverse(cause.records), cause.order));
        causes.first().copied()
    }
}

/// Removes the names and numbers of a record from its message.
fn normalize_message(subject: &RecordSubject, message: &str) -> String {
    let mut names: Vec<&str> = subject.models.iter().map(String::as_str).collect();
    names.extend(subject.pair.iter().flatten().map(String::as_str));
    names.extend(subject.case.as_deref());
    names.extend(subject.image.as_ref().map(|image| image.name.as_str()));
    names.retain(|name| !name.is_empty());
    // Remove longer names first, because one name may contain another.
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let mut kind = message.to_owned();
    for name in names {
        kind = remove_name(&kind, name);
    }
    kind.retain(|c| !c.is_ascii_digit());
    kind
}

/// Removes a name from a text where it is a separate word.
fn remove_name(text: &str, name: &str) -> String {
    let is_word_char = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let (mut plain, mut end) = (String::new(), 0);
    for (at, _) in text.match_indices(name) {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        if !is_word_char(before.chars().next_back()) && !is_word_char(after.chars().next()) {
            plain.push_str(&text[end..at]);
            end = at + name.len();
        }
    }
    plain + &text[end..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::cases::InputProblem;
    use crate::support::digest::Digest;

    fn subject(case: &str, pair: [&str; 2]) -> RecordSubject {
        let problem = InputProblem::parse("x.jsonl".as_ref(), 1, Some(case.to_owned()), "");
        let pair = Some(pair.map(str::to_owned));
        RecordSubject::of_problem(&problem, pair, "x.jsonl".to_owned(), &Digest::of(b"j"))
    }

    #[test]
    fn most_common_cause_keeps_its_first_message() {
        let mut causes = Causes::default();
        assert_eq!(causes.most_common(), None);
        causes.add(&subject("a", ["m", "n"]), "broken JSON in column 7");
        for (case, model) in [("chest left", "m"), ("knee", "n"), ("c-17", "m")] {
            let message = format!("model {model} has no answer to question_id {case}");
            causes.add(&subject(case, ["m", "n"]), &message);
        }
        let most_common = causes.most_common().unwrap();
        assert_eq!(most_common.records, 3);
        let first = "model m has no answer to question_id chest left";
        assert_eq!(most_common.first, first);
    }

    #[test]
    fn number_of_causes_is_bounded() {
        let mut causes = Causes::default();
        for i in 0..1000_u32 {
            let other: String = i.to_string().bytes().map(|b| char::from(b + 49)).collect();
            causes.add(&subject("x", ["m", "n"]), &other);
        }
        assert_eq!(causes.kinds.len(), MAX_CAUSES);
    }
}
