//! Questions in evaluations: `[Question]: …` up to the end of the line.

pub use acem3_experts::prompt::QUESTION;
use acem3_experts::prompt::QuestionInText;

/// Returns the first question of a text: the rest of the line after [`QUESTION`], without a colon
/// and surrounding spaces. A mark without text after it is no question.
pub fn first_question(text: &str) -> Option<&str> {
    QuestionInText::find(text).map(|found| found.question)
}
