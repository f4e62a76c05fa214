//! Instructions for a model without constrained decoding, and a parser of the text it writes.

use super::format::{EvaluationFormat, FormatStep, ScoreWords, one_line};
use crate::Error;

/// Placeholder of a free text in the instructions.
const FREE_TEXT: &str = "<one or two sentences>";

impl ScoreWords {
    /// Returns the placeholder of a score in the instructions.
    fn placeholder(self) -> &'static str {
        match self {
            Self::Points => "<0 to 5>",
            Self::NoYes => "<yes or no>",
        }
    }
}

impl EvaluationFormat {
    /// Renders the format as instructions, with a description in place of each free text and score.
    pub fn to_instructions(&self) -> String {
        let steps = self.steps().iter().map(|step| match step {
            FormatStep::Literal(text) => text.clone(),
            FormatStep::FreeText => format!(" {FREE_TEXT}\n"),
            FormatStep::Score(words) => format!(" {}", words.placeholder()),
        });
        steps.collect()
    }

    /// Parses the analyses and scores of a text in this format, in order.
    ///
    /// Ignores the amount of white space, letter case, Markdown markers, text before the first
    /// literal and text after a score.
    ///
    /// # Errors
    /// If the text does not match. The message states the part of the format that was expected.
    pub fn parse(&self, text: &str) -> Result<Vec<(String, u8)>, Error> {
        let plain = one_line(&text.replace(['*', '#', '`'], ""));
        // Only ASCII letters change, so byte offsets equal those of `plain`.
        let lower = plain.to_ascii_lowercase();
        let (mut ratings, mut analysis, mut position) = (Vec::new(), String::new(), 0);
        let steps = self.steps();
        for (i, step) in steps.iter().enumerate() {
            let next_literal = steps[i + 1..].iter().find_map(|step| match step {
                FormatStep::Literal(text) => Some(one_line(text)),
                FormatStep::FreeText | FormatStep::Score(_) => None,
            });
            let mismatch = |expected: &str| Error::Format(expected.to_owned());
            let end = match (&next_literal, step) {
                (_, FormatStep::Literal(text)) => {
                    let text = one_line(text);
                    let found = lower[position..].find(&text.to_ascii_lowercase());
                    position += found.ok_or_else(|| mismatch(&text))? + text.len();
                    continue;
                }
                (Some(next), _) => {
                    let found = lower[position..].find(&next.to_ascii_lowercase());
                    position + found.ok_or_else(|| mismatch(next))?
                }
                (None, _) => plain.len(),
            };
            let content = plain[position..end].trim();
            if let FormatStep::Score(words) = step {
                let expected = format!("Score: {}", words.placeholder());
                let score = parse_score(content, *words).ok_or_else(|| mismatch(&expected))?;
                ratings.push((std::mem::take(&mut analysis), score));
            } else {
                content.clone_into(&mut analysis);
            }
            position = end;
        }
        Ok(ratings)
    }
}

/// Parses the score word at the start of a text. Other words and numbers give `None`.
fn parse_score(text: &str, words: ScoreWords) -> Option<u8> {
    if words == ScoreWords::NoYes {
        let word = text.split(|c: char| !c.is_alphanumeric()).next()?.to_ascii_lowercase();
        return words.words().iter().position(|w| *w == word).map(|score| score as u8);
    }
    let mut characters = text.chars();
    let score = characters.next()?.to_digit(10).filter(|score| *score <= 5)?;
    let rest = characters.as_str();
    let starts_with_digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let is_fraction = rest.strip_prefix(['.', ',']).is_some_and(starts_with_digit);
    (!starts_with_digit(rest) && !is_fraction).then_some(score as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Aspect;
    use crate::prompt::PromptPiece;

    fn render(format: &EvaluationFormat, ratings: &[(String, u8)]) -> String {
        let pieces = format.render_pieces(ratings).into_iter();
        let texts = pieces.map(|piece| match piece {
            PromptPiece::Trusted(text) | PromptPiece::Quoted(text) => text,
            PromptPiece::Image => String::new(),
        });
        texts.collect()
    }

    #[test]
    fn rendered_ratings_parse_back() {
        for aspect in Aspect::ALL {
            let format = EvaluationFormat::for_aspect(aspect);
            let n = 2 * aspect.criteria().len();
            let ratings: Vec<(String, u8)> =
                (0..n).map(|i| (format!("Réason {i}, 3 of 5."), (i % 6) as u8)).collect();
            assert_eq!(format.parse(&render(&format, &ratings)).unwrap(), ratings);
        }
    }

    #[test]
    fn parser_accepts_markdown_and_surrounding_text() {
        let text = "Sure! Here it is.\n\n## response 1:\n**Analysis:** Right,\n  and short.\n**Score:** 4/5\n\n\
                    **Response 2:**\nanalysis: Wrong.\nScore: 1.\nI hope this helps.";
        let ratings = EvaluationFormat::for_conclusion().parse(text).unwrap();
        let expected = [("Right, and short.", 4), ("Wrong.", 1)];
        assert_eq!(ratings, expected.map(|(text, score)| (text.to_owned(), score)));
    }

    #[test]
    fn error_states_the_missing_part() {
        let error = |text: &str| {
            let parsed = EvaluationFormat::for_conclusion().parse(text);
            parsed.unwrap_err().to_string()
        };
        let first = "Response 1:\nAnalysis: Right.\nScore: 4\n";
        assert!(error("I cannot judge images.").contains("Response 1: Analysis:"));
        assert!(error(first).contains("Response 2: Analysis:"));
        for score in ["", "6", "4.5", "42", "good", "-1"] {
            let text = format!("{first}Response 2:\nAnalysis: Wrong.\nScore: {score}");
            assert!(error(&text).contains("<0 to 5>"), "{score}");
        }
    }

    #[test]
    fn instructions_describe_each_part() {
        let instructions = EvaluationFormat::for_conclusion().to_instructions();
        let first_response = "Response 1:\nAnalysis: <one or two sentences>\nScore: <0 to 5>\n";
        assert!(instructions.starts_with(first_response), "{instructions}");
        assert!(EvaluationFormat::for_conclusion().parse(&instructions).is_err());
    }
}
