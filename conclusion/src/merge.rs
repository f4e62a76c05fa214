//! The merge prompt: the case, then what the three branch experts wrote about it
//! (ACE-M³ §3, `Ec = Mc(v, q, r1, r2, Es_1, Es_2, Es_3)`).

use acem3_experts::prompt::{Dialogue, JudgeInput, Layout, Piece, Template};
use acem3_experts::{Aspect, Error};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MergeFile {
    #[expect(dead_code, reason = "read by people and by the hash of the file")]
    version: u32,
    conclusion: String,
}

/// Writes the conclusion model's prompts.
#[derive(Clone, Debug)]
pub struct MergePrompts {
    template: Template,
    dialogue: Dialogue,
}

impl MergePrompts {
    /// The prompts of a layout.
    pub fn new(layout: Layout) -> Result<Self, Error> {
        let file: MergeFile =
            toml::from_str(source(layout)).map_err(|e| Error::Template(e.to_string()))?;
        Ok(Self {
            template: Template::parse(&file.conclusion)?,
            dialogue: Dialogue::default(),
        })
    }

    /// The same prompts inside a dialogue.
    #[must_use]
    pub fn inside(mut self, dialogue: Dialogue) -> Self {
        self.dialogue = dialogue;
        self
    }

    /// The prompt for a pair and its three evaluations, given as the pieces of
    /// [`acem3_experts::prompt::Format::pieces`] in the order of [`Aspect::ALL`].
    pub fn pieces(
        &self,
        input: &JudgeInput,
        evaluations: &[Vec<Piece>; 3],
    ) -> Result<Vec<Piece>, Error> {
        let pieces = self.template.fill(|name| {
            let aspect = Aspect::ALL.iter().position(|a| a.key() == name);
            match aspect {
                Some(i) => evaluations.get(i).cloned(),
                None => input.place(name),
            }
        })?;
        Ok(self.dialogue.wrap(pieces))
    }
}

/// The text of a layout's merge file, whose hash belongs to every result.
pub fn source(layout: Layout) -> &'static str {
    match layout {
        Layout::Paper => include_str!("../data/paper.toml"),
        Layout::CaseFirst => include_str!("../data/case_first.toml"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_evaluations_stand_in_the_order_of_the_papers() -> Result<(), Error> {
        let input = JudgeInput {
            image: true,
            question: "q",
            responses: ["a", "b"],
        };
        let evaluations = ["E1", "E2", "E3"].map(|e| vec![Piece::Free(e.to_owned())]);
        for layout in [Layout::Paper, Layout::CaseFirst] {
            let pieces = MergePrompts::new(layout)?.pieces(&input, &evaluations)?;
            let frees: Vec<&str> = pieces
                .iter()
                .filter_map(|p| match p {
                    Piece::Free(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            assert_eq!(frees, ["q", "a", "b", "E1", "E2", "E3"]);
        }
        Ok(())
    }
}
