//! Format of an evaluation: a template of literals, free texts and scores.

use std::fmt::Write as _;

use crate::{Aspect, Criterion, Error, TextTokenizer};

use super::template::{PromptPiece, push_piece};

/// End of a free text.
pub const STOP: &str = "\n";
/// Literal before a score.
const SCORE_LABEL: &str = "Score:";

/// One step of an evaluation's format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatStep {
    /// Literal text that is fed to the model.
    Literal(String),
    /// Text that the model writes, up to [`STOP`] or the token budget.
    FreeText,
    /// A score from 0 to 5 that the model chooses.
    Score,
}

/// Format of the text that one member writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluationFormat(Vec<FormatStep>);

impl EvaluationFormat {
    /// Creates the format of a branch expert: an analysis and a score for each response and
    /// criterion.
    pub fn for_aspect(aspect: Aspect) -> Self {
        let mut steps = Vec::new();
        for response in 1..=2 {
            for (i, criterion) in aspect.criteria().iter().enumerate() {
                let heading = section_heading(response, i == 0, Some(*criterion));
                steps.extend([
                    FormatStep::Literal(heading),
                    FormatStep::FreeText,
                    FormatStep::Literal(SCORE_LABEL.to_owned()),
                    FormatStep::Score,
                ]);
            }
        }
        Self(steps)
    }

    /// Creates the format of the conclusion model: an analysis and a final score for each response.
    pub fn for_conclusion() -> Self {
        let steps = (1..=2).flat_map(|response| {
            let heading = section_heading(response, true, None);
            [
                FormatStep::Literal(heading),
                FormatStep::FreeText,
                FormatStep::Literal(SCORE_LABEL.to_owned()),
                FormatStep::Score,
            ]
        });
        Self(steps.collect())
    }

    /// Adds a literal at the start, such as a reward token or the lead of a chat template.
    #[must_use]
    pub fn with_prefix(mut self, prefix: &str) -> Self {
        if let Some(FormatStep::Literal(text)) = self.0.first_mut() {
            text.insert_str(0, prefix);
        }
        self
    }

    /// Returns the steps in order.
    pub fn steps(&self) -> &[FormatStep] {
        &self.0
    }

    /// Renders finished ratings in this format, as pieces of a later prompt.
    ///
    /// `ratings`: an analysis and a score for each free text, in order.
    pub fn render_pieces(&self, ratings: &[(String, u8)]) -> Vec<PromptPiece> {
        let mut pieces = Vec::new();
        let mut ratings = ratings.iter();
        let mut current = ratings.next();
        for step in &self.0 {
            let Some((analysis, score)) = current else {
                break;
            };
            match step {
                FormatStep::Literal(text) => {
                    push_piece(&mut pieces, PromptPiece::Trusted(text.clone()));
                }
                FormatStep::FreeText => {
                    pieces.push(PromptPiece::Quoted(render_free_text(analysis)));
                }
                FormatStep::Score => {
                    // Trusted, so that the tokens equal those of the generated text.
                    push_piece(&mut pieces, PromptPiece::Trusted(format!(" {score}")));
                    current = ratings.next();
                }
            }
        }
        pieces
    }
}

/// Renders a free text as the model writes it: a space, one line, and [`STOP`].
pub fn render_free_text(analysis: &str) -> String {
    let line = one_line(analysis);
    if line.is_empty() { STOP.to_owned() } else { format!(" {line}{STOP}") }
}

/// Joins a text into one line, with single spaces between the words.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the literal before an analysis. `is_first`: true for the first analysis of a response.
fn section_heading(response: usize, is_first: bool, criterion: Option<Criterion>) -> String {
    let mut text = String::new();
    if response > 1 || !is_first {
        text.push('\n');
    }
    if is_first {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Response {response}:");
    }
    if let Some(criterion) = criterion {
        let _ = writeln!(text, "Criterion {}:", criterion.name());
    }
    text.push_str("Analysis:");
    text
}

/// A step of a tokenised format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenStep {
    /// Tokens that are fed to the model.
    Literal(Vec<u32>),
    /// Text that the model writes.
    FreeText,
    /// Tokens of the scores 0 to 5.
    Score([u32; 6]),
}

impl EvaluationFormat {
    /// Tokenises the format.
    ///
    /// # Errors
    /// If the scores after a label are not six different single tokens after the same label tokens.
    pub fn tokenize(&self, tokenizer: &TextTokenizer) -> Result<Vec<TokenStep>, Error> {
        let mut steps: Vec<TokenStep> = Vec::with_capacity(self.0.len());
        for (i, step) in self.0.iter().enumerate() {
            steps.push(match step {
                FormatStep::FreeText => TokenStep::FreeText,
                FormatStep::Literal(text) if self.0.get(i + 1) == Some(&FormatStep::Score) => {
                    TokenStep::Literal(score_tokens(text, tokenizer)?.0)
                }
                FormatStep::Literal(text) => TokenStep::Literal(tokenizer.encode_trusted(text)?),
                FormatStep::Score => {
                    let label = match i.checked_sub(1).and_then(|i| self.0.get(i)) {
                        Some(FormatStep::Literal(text)) => text,
                        _ => SCORE_LABEL,
                    };
                    TokenStep::Score(score_tokens(label, tokenizer)?.1)
                }
            });
        }
        Ok(steps)
    }
}

/// Returns the tokens of the label before a score, and the token of each score.
fn score_tokens(label: &str, tokenizer: &TextTokenizer) -> Result<(Vec<u32>, [u32; 6]), Error> {
    let mut label_tokens: Option<Vec<u32>> = None;
    let mut scores = [0; 6];
    for (score, score_token) in scores.iter_mut().enumerate() {
        let text = format!("{label} {score}");
        let mut tokens = tokenizer.encode_trusted(&text)?;
        let last = tokens.pop().ok_or_else(|| Error::ScoreTokens(text.clone()))?;
        // Reject the unknown token, which is the same for all scores.
        let token_text = tokenizer.token_text(last).unwrap_or_default();
        let is_score = token_text.ends_with(&score.to_string());
        if !is_score || label_tokens.get_or_insert_with(|| tokens.clone()) != &tokens {
            return Err(Error::ScoreTokens(text));
        }
        *score_token = last;
    }
    Ok((label_tokens.unwrap_or_default(), scores))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branch_format_matches_paper() {
        let ratings: Vec<(String, u8)> =
            (0..6).map(|i| (format!("reason {i}."), (i % 6) as u8)).collect();
        let text: String = EvaluationFormat::for_aspect(Aspect::MedicalKnowledge)
            .render_pieces(&ratings)
            .into_iter()
            .map(|piece| match piece {
                PromptPiece::Trusted(text) | PromptPiece::Quoted(text) => text,
                PromptPiece::Image => String::new(),
            })
            .collect();
        let start = "Response 1:\nCriterion Factual Accuracy:\nAnalysis: reason 0.\nScore: 0\n\
                     Criterion Up-to-date Information:\nAnalysis: reason 1.\nScore: 1\n";
        assert!(text.starts_with(start), "{text}");
        assert!(text.contains("\nResponse 2:\nCriterion Factual Accuracy:\nAnalysis: reason 3.\n"));
        assert!(text.ends_with("Score: 5"), "{text}");
    }

    #[test]
    fn free_text_is_one_line() {
        assert_eq!(render_free_text(" a\n  b "), " a b\n");
        assert_eq!(render_free_text(" "), "\n");
    }
}
