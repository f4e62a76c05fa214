//! How many answers have met their case; the others are a sign of ids that do not match.

use crate::data::cases::answer_index::AnswerIndex;

/// Counts of answers whose case passed by.
#[derive(Default)]
pub(super) struct AnswerMatchCounts {
    /// Of cases, be they readable or not.
    cases: u64,
    /// Of questions that are not asked for.
    pub(super) passed_over: u64,
    /// Cases, not answers, that could not be read and whose ids are not known.
    nameless: u64,
}

impl AnswerMatchCounts {
    /// Counts the answers to the case known under one of `keys`.
    pub(super) fn case(&mut self, answers: &AnswerIndex, keys: &[String]) {
        self.cases += answers.count_of(keys);
    }

    /// Counts those to a case that could not be read, known under one of `keys` or under none.
    pub(super) fn lost_case(&mut self, answers: &AnswerIndex, keys: &[String]) {
        self.case(answers, keys);
        self.nameless += u64::from(keys.is_empty());
    }

    /// Counts those to a question that is not asked for.
    pub(super) fn unasked(&mut self, answers: &AnswerIndex, keys: &[String]) {
        self.passed_over += answers.count_of(keys);
    }

    /// The answers that met none so far. A case without a name may be that of one answer of each model.
    pub(super) fn left(&self, answers: &AnswerIndex) -> u64 {
        let perhaps = self.nameless * answers.models().len() as u64;
        let met = self.cases + self.passed_over + perhaps;
        answers.count().saturating_sub(met)
    }
}
