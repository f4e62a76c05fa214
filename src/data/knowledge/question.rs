//! Questions in evaluations: `[Question]: …` up to the end of the line.

/// Start of a question in the text of a judge or teacher (section 3.1 of AutoMedEval).
pub const QUESTION: &str = "[Question]";

/// Returns the first question of a text: the rest of the line after `[Question]`, without a colon
/// and surrounding spaces. A mark without text after it is no question.
pub fn first_question(text: &str) -> Option<&str> {
    text.match_indices(QUESTION).find_map(|(start, mark)| {
        let rest = text.get(start + mark.len()..)?;
        let line = rest.lines().next()?.trim_start();
        let question = line.strip_prefix(':').unwrap_or(line).trim();
        (!question.is_empty()).then_some(question)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_ends_with_its_line() {
        let text = "The first one is vague. [Question]: What is a stent? \r\nThen more.";
        assert_eq!(first_question(text), Some("What is a stent?"));
        assert_eq!(first_question("[Question] Is it éclair?"), Some("Is it éclair?"));
        assert_eq!(
            first_question("[Question]:\n[Question]: b [Question]: c"),
            Some("b [Question]: c")
        );
        for none in ["", "Question: what?", "[Question]", "[Question]: \n next"] {
            assert_eq!(first_question(none), None, "{none}");
        }
    }
}
