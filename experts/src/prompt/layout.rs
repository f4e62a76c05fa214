//! Prompt layouts and the prompts of the branch experts.

use serde::{Deserialize, Serialize};

use super::chat_template::ChatTemplate;
use super::form::Form;
use super::judge_input::JudgeInput;
use super::knowledge_prompt::KnowledgePrompt;
use super::rubric::{Rubric, RubricDetail};
use super::template::{PromptPiece, Template, TemplateValues};
use crate::{Aspect, Error};

/// Order of the parts of a prompt. A panel uses the layout that it was trained with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptLayout {
    /// Criteria first, the layout with which ACE-M³ was trained.
    Paper,
    /// Image, question and responses first. The prompts of the three experts share this prefix.
    CaseFirst,
}

/// Headings of the case and of the criteria, equal in all layouts.
const HEADINGS: [&str; 2] = ["### Image And Question:", "### Instruction:"];

/// Contents of a layout file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayoutFile {
    #[expect(dead_code, reason = "for readers of the file, not for the program")]
    version: u32,
    /// Prompt template of the branch experts.
    branch: String,
}

/// Contents of a file with the prompts of a form in both layouts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormFile {
    #[expect(dead_code, reason = "for readers of the file, not for the program")]
    version: u32,
    paper: String,
    case_first: String,
}

impl FormFile {
    /// Parses the template of a form's layout from the text of a form file.
    pub fn template(source: &str, prompt_form: PromptForm) -> Result<Template, Error> {
        let file: Self = toml::from_str(source).map_err(|e| Error::Template(e.to_string()))?;
        prompt_form.parse_template(match prompt_form.layout {
            PromptLayout::Paper => &file.paper,
            PromptLayout::CaseFirst => &file.case_first,
        })
    }
}

impl PromptLayout {
    /// Returns the text of the layout file. Its hash is part of the provenance.
    pub fn source(self) -> &'static str {
        match self {
            Self::Paper => include_str!("../../data/layouts/paper.toml"),
            Self::CaseFirst => include_str!("../../data/layouts/case_first.toml"),
        }
    }

    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::CaseFirst => "case-first",
        }
    }

    /// Detects the layout of a rendered prompt by the order of its headings. Returns `None` if a
    /// heading is missing.
    pub fn detect(text: &str) -> Option<Self> {
        let [case_start, criteria_start] = HEADINGS.map(|heading| text.find(heading));
        Some(if case_start? < criteria_start? { Self::CaseFirst } else { Self::Paper })
    }
}

/// What a prompt shows, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptForm {
    /// The form of judging.
    pub form: Form,
    /// The order of the parts.
    pub layout: PromptLayout,
    /// True if the prompt contains the reference answer. The form [`Form::Correctness`] always has it.
    pub shows_reference: bool,
    /// True for panels that were trained by acem3: pairs have the exact texts of the layout. See
    /// [`for_rubric`](Self::for_rubric).
    pub is_trained: bool,
    /// True if the prompt says that the member may ask questions, for which it reads evidence.
    pub offers_knowledge: bool,
}

impl PromptForm {
    /// Returns the prompts of pairs without a reference answer, in which panels are trained.
    pub fn pair(layout: PromptLayout) -> Self {
        Self {
            form: Form::Pair,
            layout,
            shows_reference: false,
            is_trained: true,
            offers_knowledge: false,
        }
    }

    /// Returns the prompts for a rubric. Trained panels have texts of their own for pairs without a
    /// reference answer by the criteria of ACE-M³ (`None`). Their other prompts are those of published
    /// models.
    #[must_use]
    pub fn for_rubric(self, rubric: Option<&Rubric>) -> Self {
        let has_keys_of_ace_m3 = rubric.is_none_or(Rubric::has_keys_of_ace_m3);
        let has_own_texts = self.form.is_pair() && !self.shows_reference && has_keys_of_ace_m3;
        Self { is_trained: self.is_trained && has_own_texts, ..self }
    }

    /// Returns the text of the file with the prompts of the branch experts. Its hash is part of the
    /// provenance.
    pub fn source(self) -> &'static str {
        match self.form {
            Form::Pair if self.is_trained => self.layout.source(),
            Form::Pair => include_str!("../../data/forms/pair.toml"),
            Form::Single => include_str!("../../data/forms/single.toml"),
            Form::List => include_str!("../../data/forms/list.toml"),
            Form::Correctness => include_str!("../../data/forms/correctness.toml"),
        }
    }

    fn template(self) -> Result<Template, Error> {
        if self.form.is_pair() && self.is_trained {
            let file: LayoutFile =
                toml::from_str(self.source()).map_err(|e| Error::Template(e.to_string()))?;
            return self.parse_template(&file.branch);
        }
        FormFile::template(self.source(), self)
    }

    /// Parses the text of a template, with the sentence that the member may ask if it may.
    pub fn parse_template(self, text: &str) -> Result<Template, Error> {
        if self.offers_knowledge {
            return Template::parse(&KnowledgePrompt::add_instruction(text)?);
        }
        Template::parse(text)
    }
}

/// Builds the prompts of the branch experts.
#[derive(Clone, Debug)]
pub struct BranchPrompts {
    prompt_form: PromptForm,
    template: Template,
    rubric: Rubric,
    detail: RubricDetail,
    chat_template: ChatTemplate,
}

impl BranchPrompts {
    /// Creates the prompts of pairs with a layout and a rubric, without a chat template.
    pub fn new(layout: PromptLayout, rubric: Rubric, detail: RubricDetail) -> Result<Self, Error> {
        Self::for_form(PromptForm::pair(layout), rubric, detail)
    }

    /// Creates the prompts of a form with a rubric, without a chat template.
    pub fn for_form(
        prompt_form: PromptForm,
        rubric: Rubric,
        detail: RubricDetail,
    ) -> Result<Self, Error> {
        let chat_template = ChatTemplate::default();
        let template = prompt_form.template()?;
        Ok(Self { prompt_form, template, rubric, detail, chat_template })
    }

    /// Puts the prompts inside a chat template.
    #[must_use]
    pub fn with_chat_template(mut self, chat_template: ChatTemplate) -> Self {
        self.chat_template = chat_template;
        self
    }

    /// Returns the chat template around the prompts.
    pub fn chat_template(&self) -> &ChatTemplate {
        &self.chat_template
    }

    /// Returns the form of the prompts.
    pub fn form(&self) -> Form {
        self.prompt_form.form
    }

    /// Returns the rubric.
    pub fn rubric(&self) -> &Rubric {
        &self.rubric
    }

    /// Builds the prompt of the expert of an aspect.
    pub fn pieces(&self, aspect: Aspect, input: &JudgeInput) -> Result<Vec<PromptPiece>, Error> {
        // A layout in which panels were trained has the same criteria for all cases.
        let has_image = input.has_image || self.prompt_form.is_trained;
        let criteria = self.rubric.describe(aspect, self.detail, has_image)?;
        let pieces =
            self.template.fill(&BranchValues { criteria, prompts: self, aspect, input })?;
        Ok(self.chat_template.wrap(pieces))
    }
}

/// Values of the template of a branch expert.
struct BranchValues<'a> {
    /// The description of the criteria.
    criteria: String,
    prompts: &'a BranchPrompts,
    aspect: Aspect,
    input: &'a JudgeInput<'a>,
}

impl TemplateValues for BranchValues<'_> {
    fn pieces(&self, placeholder: &str) -> Option<Vec<PromptPiece>> {
        let trusted = |text: String| Some(vec![PromptPiece::Trusted(text)]);
        match placeholder {
            "criteria" => trusted(self.criteria.clone()),
            "aspect" => trusted(self.prompts.rubric.aspect(self.aspect)?.name.clone()),
            _ => self.prompts.rubric.pieces(placeholder).or_else(|| self.input.pieces(placeholder)),
        }
    }

    fn has_section(&self, section: &str) -> Option<bool> {
        self.prompts.rubric.has_section(section).or_else(|| self.input.has_section(section))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A published model reads about a pair with an image what panels are trained with.
    #[test]
    fn prompts_of_pairs_are_those_of_the_layouts() -> Result<(), Error> {
        let input = JudgeInput::pair(true, "q", ["a", "b"]);
        for layout in [PromptLayout::Paper, PromptLayout::CaseFirst] {
            let pieces = |is_trained: bool| {
                let form = PromptForm { is_trained, ..PromptForm::pair(layout) };
                let rubric = Rubric::built_in()?;
                let prompts = BranchPrompts::for_form(form, rubric, RubricDetail::Full)?;
                prompts.pieces(Aspect::MEDICAL_KNOWLEDGE, &input)
            };
            assert_eq!(pieces(true)?, pieces(false)?);
        }
        Ok(())
    }
}
