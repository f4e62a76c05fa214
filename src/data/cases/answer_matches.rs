//! Counts answers that match a case. Unmatched answers suggest wrong ids.

use crate::data::cases::answer_index::AnswerIndex;

/// Counts of matched answers.
#[derive(Default)]
pub(super) struct AnswerMatchCounts {
    /// Answers to readable or unreadable cases.
    cases: u64,
    /// Answers to questions in other languages.
    pub(super) passed_over: u64,
    /// Number of unreadable cases without a known id.
    nameless: u64,
}

impl AnswerMatchCounts {
    /// Counts the answers to a case with one of these ids.
    pub(super) fn case(&mut self, answers: &AnswerIndex, keys: &[String]) {
        self.cases += answers.count_of(keys);
    }

    /// Counts the answers to an unreadable case, whose ids may be unknown.
    pub(super) fn lost_case(&mut self, answers: &AnswerIndex, keys: &[String]) {
        self.case(answers, keys);
        self.nameless += u64::from(keys.is_empty());
    }

    /// Counts the answers to a question in another language.
    pub(super) fn unasked(&mut self, answers: &AnswerIndex, keys: &[String]) {
        self.passed_over += answers.count_of(keys);
    }

    /// Number of unmatched answers so far. An unreadable case without id accounts for one answer of each model.
    pub(super) fn left(&self, answers: &AnswerIndex) -> u64 {
        let perhaps = self.nameless * answers.models().len() as u64;
        let met = self.cases + self.passed_over + perhaps;
        answers.count().saturating_sub(met)
    }
}
