//! The prompt of a question: the question alone, or a template around it.

use acem3_experts::prompt::PromptPiece;
use anyhow::{Result, bail};

/// Place of the question in a template.
const QUESTION: &str = "{question}";
/// Place of the image in a template.
const IMAGE: &str = "<image>";

/// A template of prompts. The image stands first, unless the template says where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionPrompt {
    text: String,
}

impl Default for QuestionPrompt {
    fn default() -> Self {
        Self { text: QUESTION.to_owned() }
    }
}

impl QuestionPrompt {
    /// Parses the text of a template. Line breaks at its end are removed.
    ///
    /// # Errors
    ///
    /// It has no place for the question, or several for the image.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim_start_matches('\u{feff}').trim_end_matches(['\r', '\n']);
        if !text.contains(QUESTION) {
            bail!("has no {QUESTION}\nhint: write {QUESTION} where the question of a case belongs");
        }
        if text.matches(IMAGE).count() > 1 {
            bail!(
                "has {IMAGE} {} times, expected at most once\n\
                 hint: a case has one image; without {IMAGE}, it stands first",
                text.matches(IMAGE).count()
            );
        }
        Ok(Self { text: text.to_owned() })
    }

    /// Returns the text of the template.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the prompt of a question. Special tokens that the question spells stay ordinary text.
    pub fn pieces(&self, question: &str, has_image: bool) -> Vec<PromptPiece> {
        let mut pieces = Vec::new();
        let (before, after) = match self.text.split_once(IMAGE) {
            Some((before, after)) => (before, after),
            None => ("", self.text.as_str()),
        };
        push_text(&mut pieces, before, question);
        if has_image {
            pieces.push(PromptPiece::Image);
            push_text(&mut pieces, after, question);
        } else {
            // The line break after the image belongs to it.
            let after = after.strip_prefix('\n').unwrap_or(after);
            push_text(&mut pieces, after, question);
        }
        pieces
    }

    /// Returns the prompt of a question as text, without the image.
    pub fn render(&self, question: &str) -> String {
        let texts = self.pieces(question, false).into_iter().map(|piece| match piece {
            PromptPiece::Trusted(text) | PromptPiece::Quoted(text) => text,
            PromptPiece::Image => String::new(),
        });
        texts.collect()
    }
}

/// Adds a part of a template with the question at its places.
fn push_text(pieces: &mut Vec<PromptPiece>, template: &str, question: &str) {
    for (i, part) in template.split(QUESTION).enumerate() {
        if i > 0 {
            pieces.push(PromptPiece::Quoted(question.to_owned()));
        }
        if !part.is_empty() {
            pieces.push(PromptPiece::Trusted(part.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_stands_first_or_at_its_place() {
        let trusted = |text: &str| PromptPiece::Trusted(text.to_owned());
        let question = PromptPiece::Quoted("Is it {question}?".to_owned());
        let plain = QuestionPrompt::default();
        assert_eq!(plain.pieces("Is it {question}?", true), [PromptPiece::Image, question.clone()]);
        let template = QuestionPrompt::parse("See <image>\nBriefly: {question}\n\n").unwrap();
        let expected =
            [trusted("See "), PromptPiece::Image, trusted("\nBriefly: "), question.clone()];
        assert_eq!(template.pieces("Is it {question}?", true), expected);
        assert_eq!(template.render("why?"), "See Briefly: why?");
    }

    #[test]
    fn templates_without_question_are_rejected() {
        let error = QuestionPrompt::parse("Answer briefly.").unwrap_err().to_string();
        assert!(error.contains("has no {question}\nhint: "), "{error}");
        assert!(QuestionPrompt::parse("<image> {question} <image>").is_err());
    }
}
