//! Merge prompt: the case, then the three branch evaluations
//! (ACE-M³ §3, `Ec = Mc(v, q, r1, r2, Es_1, Es_2, Es_3)`).

use acem3_experts::prompt::{ChatTemplate, JudgeInput, PromptLayout, PromptPiece, Template};
use acem3_experts::{Aspect, Error};
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
    chat_template: ChatTemplate,
}

impl MergePrompts {
    /// Creates the prompts of a layout.
    pub fn new(layout: PromptLayout) -> Result<Self, Error> {
        let file: MergeFile =
            toml::from_str(prompt_source(layout)).map_err(|e| Error::Template(e.to_string()))?;
        Ok(Self {
            template: Template::parse(&file.conclusion)?,
            chat_template: ChatTemplate::default(),
        })
    }

    /// Wraps the prompts in a chat template.
    #[must_use]
    pub fn with_chat_template(mut self, chat_template: ChatTemplate) -> Self {
        self.chat_template = chat_template;
        self
    }

    /// Builds the prompt of a pair. `evaluations`: the three evaluations in the order of
    /// [`Aspect::ALL`], rendered by [`acem3_experts::prompt::EvaluationFormat::render_pieces`].
    pub fn pieces(
        &self,
        input: &JudgeInput,
        evaluations: &[Vec<PromptPiece>; 3],
    ) -> Result<Vec<PromptPiece>, Error> {
        let pieces = self.template.fill(|name| {
            let aspect = Aspect::ALL.iter().position(|a| a.key() == name);
            match aspect {
                Some(i) => evaluations.get(i).cloned(),
                None => input.case_pieces(name),
            }
        })?;
        Ok(self.chat_template.wrap(pieces))
    }
}

/// Returns the text of the merge file of a layout. Its hash is part of the provenance of each
/// result.
pub fn prompt_source(layout: PromptLayout) -> &'static str {
    match layout {
        PromptLayout::Paper => include_str!("../data/paper.toml"),
        PromptLayout::CaseFirst => include_str!("../data/case_first.toml"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_lists_evaluations_in_order_of_aspects() -> Result<(), Error> {
        let input = JudgeInput { has_image: true, question: "q", responses: ["a", "b"] };
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
}
