//! Counts answers that match a case. Unmatched answers suggest wrong ids.

use std::collections::HashSet;

use crate::data::cases::answers::answer_index::AnswerIndex;

/// Counts of matched answers.
#[derive(Default)]
pub(crate) struct AnswerMatchCounts {
    /// Answers that match a readable or unreadable case.
    matched: u64,
    /// Answers to questions in languages that are not selected.
    pub(crate) unselected: u64,
    /// Number of unreadable cases without a known id.
    cases_without_id: u64,
    /// Ids of the questions of the counted answers.
    questions: HashSet<String>,
}

impl AnswerMatchCounts {
    /// Counts the answers to a case with one of these ids.
    pub(crate) fn count_case(&mut self, answers: &AnswerIndex, keys: &[String]) {
        self.matched += self.add(answers, keys);
    }

    /// Counts the answers to an unreadable case, whose ids may be unknown.
    pub(crate) fn count_unreadable_case(&mut self, answers: &AnswerIndex, keys: &[String]) {
        self.count_case(answers, keys);
        self.cases_without_id += u64::from(keys.is_empty());
    }

    /// Counts the answers to a question in a language that is not selected.
    pub(crate) fn count_unselected(&mut self, answers: &AnswerIndex, keys: &[String]) {
        self.unselected += self.add(answers, keys);
    }

    /// Adds the question with one of these ids, and returns the number of its answers.
    fn add(&mut self, answers: &AnswerIndex, keys: &[String]) -> u64 {
        self.questions.extend(answers.answered_key(keys).cloned());
        answers.count_for(keys)
    }

    /// Returns the number of unmatched answers so far. Each unreadable case without an id accounts
    /// for one answer of each model.
    pub(crate) fn unmatched(&self, answers: &AnswerIndex) -> u64 {
        let possibly_matched = self.cases_without_id * answers.models().len() as u64;
        let matched = self.matched + self.unselected + possibly_matched;
        answers.count().saturating_sub(matched)
    }

    /// Describes the first answer that matches no case so far.
    pub(crate) fn first_unmatched(&self, answers: &AnswerIndex) -> Option<String> {
        let (question, file, line) = answers.first_without(&self.questions)?;
        Some(format!("question_id {question}, {} line {line}", file.display()))
    }
}
