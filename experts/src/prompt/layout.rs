//! Prompt layouts and the prompts of the branch experts.

use serde::{Deserialize, Serialize};

use super::chat_template::ChatTemplate;
use super::rubric::{Rubric, RubricDetail};
use super::template::{PromptPiece, Template};
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

/// Judge's view of a pair: no reference answer, model names or labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgeInput<'a> {
    /// True if the case has an image.
    pub has_image: bool,
    /// Question of the case.
    pub question: &'a str,
    /// Both responses, in presentation order.
    pub responses: [&'a str; 2],
}

impl JudgeInput<'_> {
    /// Returns the pieces for the placeholder of the image, the question or a response; `None` for
    /// other placeholders.
    pub fn case_pieces(&self, placeholder: &str) -> Option<Vec<PromptPiece>> {
        let quoted = |text: &str| Some(vec![PromptPiece::Quoted(text.to_owned())]);
        match placeholder {
            "image" if self.has_image => Some(vec![PromptPiece::Image]),
            "image" => Some(Vec::new()),
            "question" => quoted(self.question),
            "response_1" => quoted(self.responses[0]),
            "response_2" => quoted(self.responses[1]),
            _ => None,
        }
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

/// Builds the prompts of the three branch experts.
#[derive(Clone, Debug)]
pub struct BranchPrompts {
    template: Template,
    rubric: Rubric,
    detail: RubricDetail,
    chat_template: ChatTemplate,
}

impl BranchPrompts {
    /// Creates prompts with a layout and a rubric, without a chat template.
    pub fn new(layout: PromptLayout, rubric: Rubric, detail: RubricDetail) -> Result<Self, Error> {
        let file: LayoutFile =
            toml::from_str(layout.source()).map_err(|e| Error::Template(e.to_string()))?;
        Ok(Self {
            template: Template::parse(&file.branch)?,
            rubric,
            detail,
            chat_template: ChatTemplate::default(),
        })
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

    /// Builds the prompt of the expert of an aspect.
    pub fn pieces(&self, aspect: Aspect, input: &JudgeInput) -> Result<Vec<PromptPiece>, Error> {
        let pieces = self.template.fill(|name| match name {
            "criteria" => {
                Some(vec![PromptPiece::Trusted(self.rubric.describe(aspect, self.detail))])
            }
            "aspect" => Some(vec![PromptPiece::Trusted(aspect.name().to_owned())]),
            _ => input.case_pieces(name),
        })?;
        Ok(self.chat_template.wrap(pieces))
    }
}
