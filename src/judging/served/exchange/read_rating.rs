//! A rating as read from a reply.

use std::ops::Range;

use acem3_experts::prompt::{FormatStep, ScoreWords};

/// An analysis and a score in the text of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::judging::served) struct ReadRating {
    /// The analysis.
    pub(in crate::judging::served) analysis: String,
    /// True if the analysis has the maximum length, so it was probably truncated.
    pub(in crate::judging::served) is_cut: bool,
    /// The words of the scores.
    pub(in crate::judging::served) words: ScoreWords,
    /// The score.
    pub(in crate::judging::served) score: u8,
    /// Where the word of the score is in the text, in bytes.
    pub(in crate::judging::served) place: Range<usize>,
}

/// Returns the score whose word a text starts with, and the length of the word.
pub(super) fn starting_score(text: &[u8], words: ScoreWords) -> Option<(u8, usize)> {
    let words = words.words().into_iter().zip(0_u8..);
    let mut found = words.filter_map(|(word, score)| {
        let word = word.filter(|word| text.starts_with(word.as_bytes()))?;
        Some((score, word.len()))
    });
    let (score, length) = found.next()?;
    // `42` is not the score 4.
    let is_longer = text.get(length).is_some_and(u8::is_ascii_alphanumeric);
    (!is_longer).then_some((score, length))
}

/// Describes a step of a format for messages.
pub(super) fn describe_step(step: &FormatStep) -> String {
    match step {
        FormatStep::Literal(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        FormatStep::FreeText => "an analysis and a line break".to_owned(),
        FormatStep::Score(ScoreWords::Points([low, high])) => format!("a score of {low} to {high}"),
        FormatStep::Score(ScoreWords::NoYes) => "yes or no".to_owned(),
    }
}
