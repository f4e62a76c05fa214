//! What a negative is derived from: the ratings of an evaluation, and the texts they are about.

use acem3_experts::prompt::ScoreWords;

use super::prompt_sections::PromptSections;

/// Analyses and scores for each criterion of the first response, then of the next.
pub(crate) type EvaluationRatings = Vec<(String, u8)>;

/// A correct evaluation whose negatives are derived.
#[derive(Clone, Debug)]
pub(crate) struct EvaluationContent<'a> {
    /// The ratings.
    pub(crate) ratings: &'a EvaluationRatings,
    /// Number of rated responses.
    pub(crate) responses: usize,
    /// Words of the scores.
    pub(crate) words: ScoreWords,
    /// Reference answer and responses.
    pub(crate) sections: PromptSections,
}

impl<'a> EvaluationContent<'a> {
    /// Returns the content of an evaluation of a pair, with scores from 0 to 5.
    pub(crate) fn of_pair(ratings: &'a EvaluationRatings) -> Self {
        let sections = PromptSections::default();
        Self { ratings, responses: 2, words: ScoreWords::DEFAULT, sections }
    }

    /// Returns the lowest and the highest score.
    pub(crate) fn range(&self) -> [u8; 2] {
        match self.words {
            ScoreWords::Points(range) => range,
            ScoreWords::NoYes => [0, 1],
        }
    }

    /// Returns the number of ratings of a response.
    pub(crate) fn criteria(&self) -> usize {
        self.ratings.len().checked_div(self.responses).unwrap_or_default()
    }

    /// Returns the text of the response that a rating is about, if the prompt shows it.
    pub(crate) fn response_of(&self, rating: usize) -> Option<&str> {
        let response = rating.checked_div(self.criteria())?;
        self.sections.responses.get(response).map(String::as_str)
    }

    /// Returns true if a member could write these ratings: every analysis is one non-blank line and
    /// every score is in the range.
    pub(crate) fn is_well_formed(&self, ratings: &EvaluationRatings) -> bool {
        let is_line = |text: &str| !text.trim().is_empty() && !text.contains(['\n', '\r']);
        let [low, high] = self.range();
        ratings.len() == self.criteria() * self.responses
            && ratings.iter().all(|(text, score)| is_line(text) && (low..=high).contains(score))
    }
}
