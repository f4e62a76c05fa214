//! The locked form of an evaluation: what is fixed, what is free, where a score is chosen.

use std::fmt::Write as _;

use crate::{Aspect, Criterion, Error, TextTokenizer};

use super::template::Piece;

/// Ends a free text.
pub const STOP: &str = "\n";
const SCORE: &str = "Score:";

/// One place of a locked text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Fixed text, fed to the model.
    Feed(String),
    /// Free text, written by the model up to [`STOP`] or to its budget.
    Free,
    /// One of the scores 0 to 5.
    Score,
}

/// The locked form of one member's text, with the criteria its scores belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format(Vec<Step>);

impl Format {
    /// The evaluation of an aspect: both responses, each criterion's analysis and score.
    pub fn branch(aspect: Aspect) -> Self {
        let mut steps = Vec::new();
        for response in 1..=2 {
            for (i, criterion) in aspect.criteria().iter().enumerate() {
                let opening = opening(response, i == 0, Some(*criterion));
                steps.extend([
                    Step::Feed(opening),
                    Step::Free,
                    Step::Feed(SCORE.to_owned()),
                    Step::Score,
                ]);
            }
        }
        Self(steps)
    }

    /// The conclusion: both responses, an analysis and a final score.
    pub fn conclusion() -> Self {
        let steps = (1..=2).flat_map(|response| {
            let opening = opening(response, true, None);
            [
                Step::Feed(opening),
                Step::Free,
                Step::Feed(SCORE.to_owned()),
                Step::Score,
            ]
        });
        Self(steps.collect())
    }

    /// The same form after the first words of an answer in a dialogue.
    #[must_use]
    pub fn led(mut self, lead: &str) -> Self {
        if let Some(Step::Feed(text)) = self.0.first_mut() {
            text.insert_str(0, lead);
        }
        self
    }

    /// The steps in order.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The finished text of ratings in this form, as pieces of a later prompt.
    /// `ratings`: an analysis and a score for each free text, in order.
    pub fn pieces(&self, ratings: &[(String, u8)]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut ratings = ratings.iter();
        let mut current = ratings.next();
        for step in &self.0 {
            let (Some((analysis, score)), step) = (current, step) else {
                break;
            };
            match step {
                Step::Feed(text) => super::template::push(&mut pieces, Piece::Fixed(text.clone())),
                Step::Free => {
                    pieces.push(Piece::Free(free_text(analysis)));
                }
                Step::Score => {
                    // The score's digit belongs to the format, as it did when it was chosen.
                    super::template::push(&mut pieces, Piece::Fixed(format!(" {score}")));
                    current = ratings.next();
                }
            }
        }
        pieces
    }
}

/// A free text as the model writes it: a space, one line, the stop.
pub fn free_text(analysis: &str) -> String {
    let line = one_line(analysis);
    if line.is_empty() {
        STOP.to_owned()
    } else {
        format!(" {line}{STOP}")
    }
}

/// A text without line breaks of any kind.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn opening(response: usize, first: bool, criterion: Option<Criterion>) -> String {
    let mut text = String::new();
    if response > 1 || !first {
        text.push('\n');
    }
    if first {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Response {response}:");
    }
    if let Some(criterion) = criterion {
        let _ = writeln!(text, "Criterion {}:", criterion.name());
    }
    text.push_str("Analysis:");
    text
}

/// A tokenised step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenStep {
    /// Tokens that are fed.
    Feed(Vec<u32>),
    /// Free text.
    Free,
    /// The tokens of the scores 0 to 5.
    Score([u32; 6]),
}

impl Format {
    /// The format in a tokenizer's tokens. An error when the six scores are not six single tokens
    /// of their own after a common beginning.
    pub fn tokens(&self, tokenizer: &TextTokenizer) -> Result<Vec<TokenStep>, Error> {
        let mut steps: Vec<TokenStep> = Vec::with_capacity(self.0.len());
        for (i, step) in self.0.iter().enumerate() {
            steps.push(match step {
                Step::Free => TokenStep::Free,
                Step::Feed(text) if self.0.get(i + 1) == Some(&Step::Score) => {
                    TokenStep::Feed(score_tokens(text, tokenizer)?.0)
                }
                Step::Feed(text) => TokenStep::Feed(tokenizer.fixed(text)?),
                Step::Score => {
                    let before = match i.checked_sub(1).and_then(|i| self.0.get(i)) {
                        Some(Step::Feed(text)) => text,
                        _ => SCORE,
                    };
                    TokenStep::Score(score_tokens(before, tokenizer)?.1)
                }
            });
        }
        Ok(steps)
    }
}

/// What is fed before a score, and the token of each score.
fn score_tokens(before: &str, tokenizer: &TextTokenizer) -> Result<(Vec<u32>, [u32; 6]), Error> {
    let mut fed: Option<Vec<u32>> = None;
    let mut scores = [0; 6];
    for (score, slot) in scores.iter_mut().enumerate() {
        let text = format!("{before} {score}");
        let mut tokens = tokenizer.fixed(&text)?;
        let last = tokens
            .pop()
            .ok_or_else(|| Error::ScoreTokens(text.clone()))?;
        // An unknown token would stand for every score alike.
        let piece = tokenizer.piece(last).unwrap_or_default();
        let named = piece.ends_with(&score.to_string());
        if !named || fed.get_or_insert_with(|| tokens.clone()) != &tokens {
            return Err(Error::ScoreTokens(text));
        }
        *slot = last;
    }
    Ok((fed.unwrap_or_default(), scores))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_reads_as_the_papers_print_it() {
        let ratings: Vec<(String, u8)> = (0..6)
            .map(|i| (format!("reason {i}."), (i % 6) as u8))
            .collect();
        let text: String = Format::branch(Aspect::MedicalKnowledge)
            .pieces(&ratings)
            .into_iter()
            .map(|piece| match piece {
                Piece::Fixed(text) | Piece::Free(text) => text,
                Piece::Image => String::new(),
            })
            .collect();
        let start = "Response 1:\nCriterion Factual Accuracy:\nAnalysis: reason 0.\nScore: 0\n\
                     Criterion Up-to-date Information:\nAnalysis: reason 1.\nScore: 1\n";
        assert!(text.starts_with(start), "{text}");
        assert!(text.contains("\nResponse 2:\nCriterion Factual Accuracy:\nAnalysis: reason 3.\n"));
        assert!(text.ends_with("Score: 5"), "{text}");
    }

    #[test]
    fn an_analysis_is_one_line() {
        assert_eq!(free_text(" a\n  b "), " a b\n");
        assert_eq!(free_text(" "), "\n");
    }
}
