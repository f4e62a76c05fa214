//! Why records have no verdict: the commonest cause first, however many records there are.
//!
//! Messages of one cause differ in what they name: ids, models, files, lines. Without these they are
//! equal, and are counted together.

use std::collections::HashMap;

use crate::judging::run::record::RecordSubject;

/// Causes that are told apart; what comes after so many is not counted.
const KINDS: usize = 64;

/// Counts of causes.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    kinds: HashMap<String, Cause>,
}

/// A cause, as its first record told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// How many records have it.
    pub records: u64,
    /// The message of the first of them.
    pub first: String,
    /// Causes that came before it.
    order: usize,
}

impl Causes {
    /// Counts a record without a verdict.
    pub fn add(&mut self, subject: &RecordSubject, message: &str) {
        let order = self.kinds.len();
        let kind = kind(subject, message);
        if let Some(cause) = self.kinds.get_mut(&kind) {
            cause.records += 1;
        } else if order < KINDS {
            let cause = Cause {
                records: 1,
                first: message.to_owned(),
                order,
            };
            self.kinds.insert(kind, cause);
        }
    }

    /// The commonest cause; of two that are equally common, the one that came first.
    pub fn commonest(&self) -> Option<&Cause> {
        let mut causes: Vec<&Cause> = self.kinds.values().collect();
        causes.sort_by_key(|cause| (std::cmp::Reverse(cause.records), cause.order));
        causes.first().copied()
    }
}

/// A message without what is its record's own.
fn kind(subject: &RecordSubject, message: &str) -> String {
    let mut names: Vec<&str> = subject.models.iter().map(String::as_str).collect();
    names.extend(subject.pair.iter().flatten().map(String::as_str));
    names.extend(subject.case.as_deref());
    names.extend(subject.image.as_ref().map(|image| image.name.as_str()));
    names.retain(|name| !name.is_empty());
    // A name within another one would leave its rest behind.
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let mut kind = message.to_owned();
    for name in names {
        kind = without(&kind, name);
    }
    kind.retain(|c| !c.is_ascii_digit());
    kind
}

/// A text without a name, where that stands as words of its own.
fn without(text: &str, name: &str) -> String {
    let within = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let (mut plain, mut end) = (String::new(), 0);
    for (at, _) in text.match_indices(name) {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        if !within(before.chars().next_back()) && !within(after.chars().next()) {
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
    fn the_commonest_cause_is_told_as_it_came_first() {
        let mut causes = Causes::default();
        assert_eq!(causes.commonest(), None);
        causes.add(&subject("a", ["m", "n"]), "broken JSON in column 7");
        for (case, model) in [("chest left", "m"), ("knee", "n"), ("c-17", "m")] {
            let message = format!("model {model} has no answer to question_id {case}");
            causes.add(&subject(case, ["m", "n"]), &message);
        }
        let commonest = causes.commonest().unwrap();
        assert_eq!(commonest.records, 3);
        let first = "model m has no answer to question_id chest left";
        assert_eq!(commonest.first, first);
    }

    #[test]
    fn memory_does_not_grow_with_the_records() {
        let mut causes = Causes::default();
        for i in 0..1000_u32 {
            let other: String = i.to_string().bytes().map(|b| char::from(b + 49)).collect();
            causes.add(&subject("x", ["m", "n"]), &other);
        }
        assert_eq!(causes.kinds.len(), KINDS);
    }
}
