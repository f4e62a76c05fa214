//! The reference answer, the responses and the score range that a prompt states.

use std::sync::LazyLock;

use regex::Regex;

/// Sentence of acem3's prompts that states the lowest and the highest score.
static SCORE_RANGE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"give (?:a|it a|each response a final|it a final) score between (\d)-(\d)\b").ok()
});

/// Sections of a prompt in the headings of acem3.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PromptSections {
    /// The reference answer; `None` if the prompt does not show it.
    pub(crate) reference: Option<String>,
    /// The responses, in the order of the prompt; empty if the prompt has other headings.
    pub(crate) responses: Vec<String>,
    /// Lowest and highest score, if the prompt states them.
    pub(crate) range: Option<[u8; 2]>,
}

impl PromptSections {
    /// Reads the sections of a prompt. A section ends at the next line that starts with `###`.
    pub(crate) fn read(prompt: &str) -> Self {
        let mut sections = Self { range: read_range(prompt), ..Self::default() };
        let mut heading = None;
        let mut content = String::new();
        for line in prompt.lines().chain(["### "]) {
            if let Some(next) = line.strip_prefix("### ") {
                sections.add(heading, content.trim());
                heading = Some(next);
                content.clear();
            } else {
                content += line;
                content.push('\n');
            }
        }
        sections
    }

    fn add(&mut self, heading: Option<&str>, content: &str) {
        let Some(heading) = heading else { return };
        if heading.starts_with("Reference Answer:") {
            self.reference.get_or_insert_with(|| content.to_owned());
        }
        let number = heading.strip_prefix("Response").and_then(|rest| rest.strip_suffix(':'));
        let number = number.map(str::trim);
        let next = (self.responses.len() + 1).to_string();
        if number.is_some_and(|number| number == next || (number.is_empty() && next == "1")) {
            self.responses.push(content.to_owned());
        }
    }
}

fn read_range(prompt: &str) -> Option<[u8; 2]> {
    let captures = SCORE_RANGE.as_ref()?.captures(prompt)?;
    let score = |i| captures.get(i)?.as_str().parse::<u8>().ok();
    let range = [score(1)?, score(2)?];
    (range[0] < range[1] && range[1] <= 5).then_some(range)
}

#[cfg(test)]
mod tests {
    use acem3_experts::Aspect;
    use acem3_experts::prompt::{
        BranchPrompts, Form, JudgeInput, PromptForm, PromptLayout, Rubric, RubricDetail,
    };

    use super::*;
    use crate::training::preferences::prompt_text;

    #[test]
    fn sections_of_all_forms_are_read() {
        for form in Form::ALL {
            for layout in [PromptLayout::Paper, PromptLayout::CaseFirst] {
                let prompt_form = PromptForm {
                    form,
                    layout,
                    shows_reference: true,
                    is_trained: false,
                    offers_knowledge: false,
                };
                let rubric = Rubric::built_in().unwrap();
                let prompts =
                    BranchPrompts::for_form(prompt_form, rubric, RubricDetail::Full).unwrap();
                let responses: Vec<&str> =
                    ["One\nline.", "Two", "Three"][..form.max_responses().min(3)].to_vec();
                let input = JudgeInput {
                    has_image: true,
                    question: "Which side?",
                    reference: Some("The left."),
                    responses: responses.clone(),
                };
                let pieces = prompts.pieces(Aspect::MEDICAL_KNOWLEDGE, &input).unwrap();
                let sections = PromptSections::read(&prompt_text(&pieces));
                assert_eq!(sections.reference.as_deref(), Some("The left."), "{form:?}");
                assert_eq!(sections.responses, responses, "{form:?}");
                let range = (form != Form::Correctness).then_some([0, 5]);
                assert_eq!(sections.range, range, "{form:?} {layout:?}");
            }
        }
        assert_eq!(PromptSections::read("Which is better?"), PromptSections::default());
    }
}
