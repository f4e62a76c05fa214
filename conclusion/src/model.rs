//! The conclusion model: merges three evaluations into the final scores.

use std::sync::Arc;

use acem3_experts::generate::{ImageTokens, Task};
use acem3_experts::prompt::{Dialogue, Format, JudgeInput, Layout, Piece, StagedPrompt, TokenStep};
use acem3_experts::{Aspect, BranchEvaluation, Error, TextTokenizer};

use crate::merge::MergePrompts;

/// The conclusion's place among an engine's heads, after the three experts.
pub const MEMBER: usize = Aspect::ALL.len();

/// Writes the conclusion's tasks.
pub struct ConclusionModel {
    merge: MergePrompts,
    format: Arc<[TokenStep]>,
}

impl ConclusionModel {
    /// The conclusion model of a layout.
    pub fn new(layout: Layout, tokenizer: &TextTokenizer) -> Result<Self, Error> {
        Self::inside(layout, Dialogue::default(), "", tokenizer)
    }

    /// The conclusion model of a layout, spoken to in a dialogue. `lead`: what its text begins with, a
    /// reward token or nothing.
    pub fn inside(
        layout: Layout,
        dialogue: Dialogue,
        lead: &str,
        tokenizer: &TextTokenizer,
    ) -> Result<Self, Error> {
        let format = Format::conclusion().led(lead).led(&dialogue.lead);
        let format = format.tokens(tokenizer)?.into();
        Ok(Self {
            merge: MergePrompts::new(layout)?.inside(dialogue),
            format,
        })
    }

    /// The task for one pair in one order, given what the experts wrote about it in that order.
    pub fn task(
        &self,
        input: &JudgeInput,
        image: Option<&Arc<ImageTokens>>,
        evaluations: &[BranchEvaluation],
        tokenizer: &TextTokenizer,
    ) -> Result<Task, Error> {
        let texts = Aspect::ALL.map(|aspect| written(aspect, evaluations));
        let pieces = self.merge.pieces(input, &texts)?;
        Ok(Task {
            member: MEMBER,
            prompt: StagedPrompt::new(&pieces, tokenizer)?,
            image: image.cloned(),
            format: self.format.clone(),
        })
    }
}

/// An evaluation as text again, in the words in which it was generated.
fn written(aspect: Aspect, evaluations: &[BranchEvaluation]) -> Vec<Piece> {
    let of = evaluations.iter().find(|e| e.aspect == aspect);
    let ratings: Vec<(String, u8)> = of
        .into_iter()
        .flat_map(|e| (0..2).flat_map(move |r| e.ratings.iter().map(move |(_, pair)| &pair[r])))
        .map(|rating| (rating.analysis.clone(), rating.score.value))
        .collect();
    Format::branch(aspect).pieces(&ratings)
}
