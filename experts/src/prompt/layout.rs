//! The order in which a prompt tells its story, and the prompt of a branch expert.

use serde::{Deserialize, Serialize};

use super::dialogue::Dialogue;
use super::rubric::{Detail, Rubric};
use super::template::{Piece, Template};
use crate::{Aspect, Error};

/// Which of the prompt files a panel was trained with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Criteria first, as ACE-M³ was trained.
    Paper,
    /// Image, question and responses first: the branches of a case share all but their last lines.
    CaseFirst,
}

/// The headings of the case and of what is asked about it, in every layout.
const HEADINGS: [&str; 2] = ["### Image And Question:", "### Instruction:"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayoutFile {
    #[expect(dead_code, reason = "read by people and by the hash of the file")]
    version: u32,
    branch: String,
}

/// One pair as the judge sees it. It holds no reference answer, no model names and no labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgeInput<'a> {
    /// Whether there is an image.
    pub image: bool,
    /// The question.
    pub question: &'a str,
    /// The two responses, in the order of presentation.
    pub responses: [&'a str; 2],
}

impl JudgeInput<'_> {
    /// The pieces of a place of a template that depends on the case alone.
    pub fn place(&self, name: &str) -> Option<Vec<Piece>> {
        let free = |text: &str| Some(vec![Piece::Free(text.to_owned())]);
        match name {
            "image" if self.image => Some(vec![Piece::Image]),
            "image" => Some(Vec::new()),
            "question" => free(self.question),
            "response_1" => free(self.responses[0]),
            "response_2" => free(self.responses[1]),
            _ => None,
        }
    }
}

impl Layout {
    /// The text of the layout file, whose hash belongs to every result.
    pub fn source(self) -> &'static str {
        match self {
            Self::Paper => include_str!("../../data/layouts/paper.toml"),
            Self::CaseFirst => include_str!("../../data/layouts/case_first.toml"),
        }
    }

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::CaseFirst => "case-first",
        }
    }

    /// The layout of a written prompt, by which of its two headings stands first; `None` where it has not both.
    pub fn of_prompt(text: &str) -> Option<Self> {
        let [case, criteria] = HEADINGS.map(|heading| text.find(heading));
        Some(if case? < criteria? {
            Self::CaseFirst
        } else {
            Self::Paper
        })
    }
}

/// Writes the prompts of the three branch experts.
#[derive(Clone, Debug)]
pub struct BranchPrompts {
    template: Template,
    rubric: Rubric,
    detail: Detail,
    dialogue: Dialogue,
}

impl BranchPrompts {
    /// The prompts of a layout with a rubric.
    pub fn new(layout: Layout, rubric: Rubric, detail: Detail) -> Result<Self, Error> {
        let file: LayoutFile =
            toml::from_str(layout.source()).map_err(|e| Error::Template(e.to_string()))?;
        Ok(Self {
            template: Template::parse(&file.branch)?,
            rubric,
            detail,
            dialogue: Dialogue::default(),
        })
    }

    /// The same prompts inside a dialogue.
    #[must_use]
    pub fn inside(mut self, dialogue: Dialogue) -> Self {
        self.dialogue = dialogue;
        self
    }

    /// The dialogue around the prompts.
    pub fn dialogue(&self) -> &Dialogue {
        &self.dialogue
    }

    /// The prompt of one aspect's expert.
    pub fn pieces(&self, aspect: Aspect, input: &JudgeInput) -> Result<Vec<Piece>, Error> {
        let pieces = self.template.fill(|name| match name {
            "criteria" => Some(vec![Piece::Fixed(
                self.rubric.describe(aspect, self.detail),
            )]),
            "aspect" => Some(vec![Piece::Fixed(aspect.name().to_owned())]),
            _ => input.place(name),
        })?;
        Ok(self.dialogue.wrap(pieces))
    }
}
