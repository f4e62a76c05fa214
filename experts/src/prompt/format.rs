//! Format of an evaluation: a template of literals, free texts and scores.

use std::fmt::Write as _;

use crate::{Aspect, Error, TextTokenizer};

use super::form::Form;
use super::rubric::RubricAspect;
use super::score_words::ScoreWords;
use super::template::{PromptPiece, push_piece};

/// End of a free text.
pub const STOP: &str = "\n";
/// Literal before a score.
const SCORE_LABEL: &str = "Score:";
/// Literal before the answer whether a response is correct.
const CORRECT_LABEL: &str = "Correct:";

/// One step of an evaluation's format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatStep {
    /// Literal text that is fed to the model.
    Literal(String),
    /// Text that the model writes, up to [`STOP`] or the token budget.
    FreeText,
    /// A score that the model chooses as one of these words.
    Score(ScoreWords),
}

/// Format of the text that one member writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluationFormat(Vec<FormatStep>);

impl EvaluationFormat {
    /// Creates the format of a branch expert of ACE-M³ for pairs: an analysis and a score for each
    /// response and criterion.
    pub fn for_aspect(aspect: Aspect) -> Self {
        let names: Vec<String> =
            aspect.criteria().iter().map(|criterion| criterion.name()).collect();
        Self::for_criteria(2, &names, ScoreWords::DEFAULT)
    }

    /// Creates the format of the conclusion model for pairs: an analysis and a final score for each
    /// response.
    pub fn for_conclusion() -> Self {
        Self::for_final_scores(2, ScoreWords::DEFAULT)
    }

    /// Creates the format of a branch expert: that of [`Self::for_expert`], or that of
    /// [`Self::for_correctness`] if the form asks whether the response is correct.
    pub fn of_expert(
        form: Form,
        responses: usize,
        aspect: &RubricAspect,
        words: ScoreWords,
    ) -> Self {
        match form {
            Form::Pair | Form::Single | Form::List => Self::for_expert(responses, aspect, words),
            Form::Correctness => Self::for_correctness(),
        }
    }

    /// Creates the format of a branch expert: an analysis and a score for each response and criterion.
    pub fn for_expert(responses: usize, aspect: &RubricAspect, words: ScoreWords) -> Self {
        let names: Vec<String> = aspect.criteria.iter().map(|c| c.name.clone()).collect();
        Self::for_criteria(responses, &names, words)
    }

    /// Creates the format of an evaluation by criteria with these names.
    pub fn for_criteria(responses: usize, names: &[String], words: ScoreWords) -> Self {
        let mut steps = Vec::new();
        for response in 1..=responses {
            for (i, name) in names.iter().enumerate() {
                let heading =
                    SectionHeading { response, responses, is_first: i == 0, criterion: Some(name) };
                push_rating(&mut steps, &heading, words);
            }
        }
        Self(steps)
    }

    /// Creates the format of the conclusion model: an analysis and a final score for each response.
    pub fn for_final_scores(responses: usize, words: ScoreWords) -> Self {
        let mut steps = Vec::new();
        for response in 1..=responses {
            let heading = SectionHeading { response, responses, is_first: true, criterion: None };
            push_rating(&mut steps, &heading, words);
        }
        Self(steps)
    }

    /// Creates the format of the form [`Form::Correctness`]: an analysis, and whether the response is
    /// correct.
    pub fn for_correctness() -> Self {
        Self(vec![
            FormatStep::Literal("Analysis:".to_owned()),
            FormatStep::FreeText,
            FormatStep::Literal(CORRECT_LABEL.to_owned()),
            FormatStep::Score(ScoreWords::NoYes),
        ])
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
        let render = |(analysis, score): &(String, u8)| (render_free_text(analysis), *score);
        self.render_free_texts(ratings.iter().map(render))
    }

    /// Renders finished ratings in this format. `ratings`: what stands between the literal before
    /// each free text and the one after it, with its [`STOP`], and the score.
    pub fn render_free_texts(
        &self,
        ratings: impl IntoIterator<Item = (String, u8)>,
    ) -> Vec<PromptPiece> {
        let mut pieces = Vec::new();
        let mut ratings = ratings.into_iter();
        let mut current = ratings.next();
        for step in &self.0 {
            let Some((analysis, score)) = &current else {
                break;
            };
            match step {
                FormatStep::Literal(text) => {
                    push_piece(&mut pieces, PromptPiece::Trusted(text.clone()));
                }
                FormatStep::FreeText => {
                    pieces.push(PromptPiece::Quoted(analysis.clone()));
                }
                FormatStep::Score(words) => {
                    // Trusted, so that the tokens equal those of the generated text.
                    let word = words.word(*score);
                    push_piece(&mut pieces, PromptPiece::Trusted(format!(" {word}")));
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

/// Place of a rating in an evaluation.
struct SectionHeading<'a> {
    /// Number of the response, from 1.
    response: usize,
    /// Number of responses of the evaluation.
    responses: usize,
    /// True for the first rating of the response.
    is_first: bool,
    /// Name of the criterion; `None` for the final score.
    criterion: Option<&'a str>,
}

impl SectionHeading<'_> {
    /// Returns the literal before the analysis.
    fn to_text(&self) -> String {
        let mut text = String::new();
        if self.response > 1 || !self.is_first {
            text.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = match (self.is_first, self.responses) {
            (false, _) => Ok(()),
            (true, 1) => writeln!(text, "Response:"),
            (true, _) => writeln!(text, "Response {}:", self.response),
        };
        if let Some(name) = self.criterion {
            let _ = writeln!(text, "Criterion {name}:");
        }
        text.push_str("Analysis:");
        text
    }
}

/// Appends the steps of a rating: its heading, an analysis and a score.
fn push_rating(steps: &mut Vec<FormatStep>, heading: &SectionHeading<'_>, words: ScoreWords) {
    steps.extend([
        FormatStep::Literal(heading.to_text()),
        FormatStep::FreeText,
        FormatStep::Literal(SCORE_LABEL.to_owned()),
        FormatStep::Score(words),
    ]);
}

/// In place of the token of a score below the lowest one. No vocabulary is that large.
pub const NO_TOKEN: u32 = u32::MAX;

/// A step of a tokenised format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenStep {
    /// Tokens that are fed to the model.
    Literal(Vec<u32>),
    /// Text that the model writes.
    FreeText,
    /// Tokens of the scores from 0 on; [`NO_TOKEN`] for a score that cannot be chosen.
    Score(Vec<u32>),
}

impl EvaluationFormat {
    /// Tokenises the format.
    ///
    /// # Errors
    /// If the score words after a label are not different single tokens after the same label tokens.
    pub fn tokenize(&self, tokenizer: &TextTokenizer) -> Result<Vec<TokenStep>, Error> {
        let mut steps: Vec<TokenStep> = Vec::with_capacity(self.0.len());
        for (i, step) in self.0.iter().enumerate() {
            steps.push(match step {
                FormatStep::FreeText => TokenStep::FreeText,
                FormatStep::Literal(text) => match self.0.get(i + 1) {
                    Some(FormatStep::Score(words)) => {
                        TokenStep::Literal(score_tokens(text, *words, tokenizer)?.0)
                    }
                    _ => TokenStep::Literal(tokenizer.encode_trusted(text)?),
                },
                FormatStep::Score(words) => {
                    let label = match i.checked_sub(1).and_then(|i| self.0.get(i)) {
                        Some(FormatStep::Literal(text)) => text,
                        _ => SCORE_LABEL,
                    };
                    TokenStep::Score(score_tokens(label, *words, tokenizer)?.1)
                }
            });
        }
        Ok(steps)
    }
}

/// Returns the tokens of the label before a score, and the token of each score.
fn score_tokens(
    label: &str,
    words: ScoreWords,
    tokenizer: &TextTokenizer,
) -> Result<(Vec<u32>, Vec<u32>), Error> {
    let mut label_tokens: Option<Vec<u32>> = None;
    let mut scores = Vec::new();
    for word in words.words() {
        let Some(word) = word else {
            scores.push(NO_TOKEN);
            continue;
        };
        let text = format!("{label} {word}");
        let mut tokens = tokenizer.encode_trusted(&text)?;
        let last = tokens.pop().ok_or_else(|| Error::ScoreTokens(text.clone()))?;
        // Reject the unknown token, which is the same for all scores.
        let token_text = tokenizer.token_text(last).unwrap_or_default();
        let is_score = token_text.ends_with(word);
        if !is_score || label_tokens.get_or_insert_with(|| tokens.clone()) != &tokens {
            return Err(Error::ScoreTokens(text));
        }
        scores.push(last);
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
        let text: String = EvaluationFormat::for_aspect(Aspect::MEDICAL_KNOWLEDGE)
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

    #[test]
    fn single_format_has_one_response_and_correctness_one_answer() {
        let text = |format: EvaluationFormat| -> String {
            let steps = format.steps().iter().map(|step| match step {
                FormatStep::Literal(text) => text.clone(),
                FormatStep::FreeText => " …\n".to_owned(),
                FormatStep::Score(words) => {
                    format!(
                        " {}",
                        words.words().into_iter().flatten().collect::<Vec<_>>().join("|")
                    )
                }
            });
            steps.collect()
        };
        assert_eq!(
            text(EvaluationFormat::for_final_scores(1, ScoreWords::DEFAULT)),
            "Response:\nAnalysis: …\nScore: 0|1|2|3|4|5"
        );
        assert_eq!(text(EvaluationFormat::for_correctness()), "Analysis: …\nCorrect: no|yes");
    }
}
