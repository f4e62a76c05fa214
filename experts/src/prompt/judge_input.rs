//! What a member sees of a case.

use super::template::{PromptPiece, TemplateValues};

/// Judge's view of a case: no model names or labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgeInput<'a> {
    /// True if the case has an image.
    pub has_image: bool,
    /// Question of the case.
    pub question: &'a str,
    /// Reference answer, if the prompt shows it.
    pub reference: Option<&'a str>,
    /// Responses, in presentation order.
    pub responses: Vec<&'a str>,
}

impl<'a> JudgeInput<'a> {
    /// Creates the view of a case with two responses, without a reference answer.
    pub fn pair(has_image: bool, question: &'a str, responses: [&'a str; 2]) -> Self {
        Self { has_image, question, reference: None, responses: responses.into() }
    }

    /// Returns the number of quoted texts of the case in a prompt: question, reference and responses.
    pub fn text_count(&self) -> usize {
        1 + usize::from(self.reference.is_some()) + self.responses.len()
    }
}

impl JudgeInput<'_> {
    /// Returns all responses below their headings.
    fn numbered_responses(&self) -> Vec<PromptPiece> {
        let numbered = self.responses.iter().zip(1..).map(|(text, number)| {
            [
                PromptPiece::Trusted(format!("### Response {number}:\n")),
                PromptPiece::Quoted((*text).to_owned()),
                PromptPiece::Trusted("\n".to_owned()),
            ]
        });
        numbered.flatten().collect()
    }
}

/// Returns the word for a small number.
fn number_word(number: usize) -> String {
    let words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight"];
    words.get(number).map_or_else(|| number.to_string(), |word| (*word).to_owned())
}

impl TemplateValues for JudgeInput<'_> {
    fn pieces(&self, placeholder: &str) -> Option<Vec<PromptPiece>> {
        let quoted = |text: &str| Some(vec![PromptPiece::Quoted(text.to_owned())]);
        match placeholder {
            "image" if self.has_image => Some(vec![PromptPiece::Image]),
            "image" => Some(Vec::new()),
            "question" => quoted(self.question),
            "reference" => quoted(self.reference?),
            "responses" => Some(self.numbered_responses()),
            "count" => Some(vec![PromptPiece::Trusted(number_word(self.responses.len()))]),
            "response" | "response_1" => quoted(self.responses.first()?),
            "response_2" => quoted(self.responses.get(1)?),
            _ => None,
        }
    }

    fn has_section(&self, section: &str) -> Option<bool> {
        match section {
            "image" => Some(self.has_image),
            "reference" => Some(self.reference.is_some()),
            _ => None,
        }
    }
}
