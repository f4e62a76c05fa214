//! Merge prompt: the case, then the branch evaluations
//! (ACE-M³ §3, `Ec = Mc(v, q, r1, r2, Es_1, Es_2, Es_3)`).

use acem3_experts::Error;
use acem3_experts::prompt::{
    ChatTemplate, Form, FormFile, JudgeInput, PromptForm, PromptLayout, PromptPiece, Rubric,
    Template, TemplateValues,
};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MergeFile {
    #[expect(dead_code, reason = "for readers of the file and for its hash")]
    version: u32,
    conclusion: String,
}

/// Builds the prompts of the conclusion model.
#[derive(Clone, Debug)]
pub struct MergePrompts {
    template: Template,
    rubric: Rubric,
    chat_template: ChatTemplate,
}

impl MergePrompts {
    /// Creates the prompts of pairs in a layout.
    pub fn new(layout: PromptLayout) -> Result<Self, Error> {
        Self::for_form(PromptForm::pair(layout), Rubric::built_in()?)
    }

    /// Creates the prompts of a form with a rubric.
    ///
    /// # Errors
    /// If the form has no conclusion model.
    pub fn for_form(prompt_form: PromptForm, rubric: Rubric) -> Result<Self, Error> {
        let Some(source) = prompt_source(prompt_form) else {
            let form = prompt_form.form.name();
            return Err(Error::Template(format!("the form {form} has no conclusion model")));
        };
        let template = if prompt_form.form.is_pair() && prompt_form.is_trained {
            let file: MergeFile =
                toml::from_str(source).map_err(|e| Error::Template(e.to_string()))?;
            prompt_form.parse_template(&file.conclusion)?
        } else {
            FormFile::template(source, prompt_form)?
        };
        Ok(Self { template, rubric, chat_template: ChatTemplate::default() })
    }

    /// Wraps the prompts in a chat template.
    #[must_use]
    pub fn with_chat_template(mut self, chat_template: ChatTemplate) -> Self {
        self.chat_template = chat_template;
        self
    }

    /// Returns the chat template around the prompts.
    pub fn chat_template(&self) -> &ChatTemplate {
        &self.chat_template
    }

    /// Returns the rubric.
    pub fn rubric(&self) -> &Rubric {
        &self.rubric
    }

    /// Builds the prompt of a case. `evaluations`: the evaluations in the order of the aspects of the
    /// rubric, rendered by [`acem3_experts::prompt::EvaluationFormat::render_pieces`].
    pub fn pieces(
        &self,
        input: &JudgeInput,
        evaluations: &[Vec<PromptPiece>],
    ) -> Result<Vec<PromptPiece>, Error> {
        let pieces =
            self.template.fill(&MergeValues { rubric: &self.rubric, input, evaluations })?;
        Ok(self.chat_template.wrap(pieces))
    }
}

/// Values of the template of the conclusion model.
struct MergeValues<'a> {
    rubric: &'a Rubric,
    input: &'a JudgeInput<'a>,
    evaluations: &'a [Vec<PromptPiece>],
}

impl MergeValues<'_> {
    /// Returns all evaluations below their headings.
    fn all_evaluations(&self) -> Vec<PromptPiece> {
        let aspects = self.rubric.aspects.iter().zip(self.evaluations);
        let sections = aspects.map(|(aspect, evaluation)| {
            let heading = PromptPiece::Trusted(format!("### {} Evaluation:\n", aspect.name));
            let end = PromptPiece::Trusted("\n".to_owned());
            [heading].into_iter().chain(evaluation.iter().cloned()).chain([end])
        });
        sections.flatten().collect()
    }
}

impl TemplateValues for MergeValues<'_> {
    fn pieces(&self, placeholder: &str) -> Option<Vec<PromptPiece>> {
        let of_aspect = self.rubric.aspects.iter().position(|a| a.key.key() == placeholder);
        match of_aspect {
            _ if placeholder == "evaluations" => Some(self.all_evaluations()),
            Some(i) => self.evaluations.get(i).cloned(),
            None => self.rubric.pieces(placeholder).or_else(|| self.input.pieces(placeholder)),
        }
    }

    fn has_section(&self, section: &str) -> Option<bool> {
        self.rubric.has_section(section).or_else(|| self.input.has_section(section))
    }
}

/// Returns the text of the file with the prompts of the conclusion model; `None` if the form has
/// none. Its hash is part of the provenance of each result.
pub fn prompt_source(prompt_form: PromptForm) -> Option<&'static str> {
    match prompt_form.form {
        Form::Pair if prompt_form.is_trained => Some(match prompt_form.layout {
            PromptLayout::Paper => include_str!("../data/paper.toml"),
            PromptLayout::CaseFirst => include_str!("../data/case_first.toml"),
        }),
        Form::Pair => Some(include_str!("../data/forms/pair.toml")),
        Form::Single => Some(include_str!("../data/forms/single.toml")),
        Form::List => Some(include_str!("../data/forms/list.toml")),
        Form::Correctness => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_lists_evaluations_in_order_of_aspects() -> Result<(), Error> {
        let input = JudgeInput::pair(true, "q", ["a", "b"]);
        let evaluations = ["E1", "E2", "E3"].map(|e| vec![PromptPiece::Quoted(e.to_owned())]);
        for layout in [PromptLayout::Paper, PromptLayout::CaseFirst] {
            let pieces = MergePrompts::new(layout)?.pieces(&input, &evaluations)?;
            let free_texts: Vec<&str> = pieces
                .iter()
                .filter_map(|p| match p {
                    PromptPiece::Quoted(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            assert_eq!(free_texts, ["q", "a", "b", "E1", "E2", "E3"]);
        }
        Ok(())
    }

    #[test]
    fn single_prompt_shows_reference_and_image_only_if_given() -> Result<(), Error> {
        let evaluations = ["E1", "E2", "E3"].map(|e| vec![PromptPiece::Trusted(e.to_owned())]);
        for layout in [PromptLayout::Paper, PromptLayout::CaseFirst] {
            for (has_image, reference) in [(true, Some("known")), (false, None)] {
                let form = Form::Single;
                let shows_reference = reference.is_some();
                let pair = PromptForm::pair(layout);
                let prompts = MergePrompts::for_form(
                    PromptForm { form, shows_reference, is_trained: false, ..pair },
                    Rubric::built_in()?,
                )?;
                let input =
                    JudgeInput { has_image, question: "q", reference, responses: vec!["a"] };
                let pieces = prompts.pieces(&input, &evaluations)?;
                let text: String = pieces
                    .iter()
                    .map(|piece| match piece {
                        PromptPiece::Trusted(text) | PromptPiece::Quoted(text) => text.as_str(),
                        PromptPiece::Image => "<image>",
                    })
                    .collect();
                assert_eq!(text.contains("<image>"), has_image, "{text}");
                assert_eq!(text.to_lowercase().contains(" image"), has_image, "{text}");
                assert_eq!(text.contains("### Reference Answer"), shows_reference, "{text}");
                assert!(text.contains("### Response:\na\n"), "{text}");
            }
        }
        Ok(())
    }
}
