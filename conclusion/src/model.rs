//! Conclusion model: merges three evaluations into the final scores.

use std::sync::Arc;

use acem3_experts::generate::{GenerationTask, ImageTokens};
use acem3_experts::prompt::{
    ChatTemplate, EvaluationFormat, JudgeInput, PromptLayout, PromptPiece, StagedPrompt, TokenStep,
};
use acem3_experts::{Aspect, BranchEvaluation, Error, TextTokenizer};

use crate::merge::MergePrompts;

/// Index of the conclusion model among the heads of an engine, after the three branch experts.
pub const CONCLUSION_MEMBER: usize = Aspect::ALL.len();

/// Builds the generation tasks of the conclusion model.
pub struct ConclusionModel {
    merge: MergePrompts,
    format: Arc<[TokenStep]>,
}

impl ConclusionModel {
    /// Creates the conclusion model of a layout, without a chat template.
    pub fn new(layout: PromptLayout, tokenizer: &TextTokenizer) -> Result<Self, Error> {
        Self::with_chat_template(layout, ChatTemplate::default(), "", tokenizer)
    }

    /// Creates the conclusion model of a layout with a chat template. `prefix`: first text of the
    /// completion, a reward token or empty.
    pub fn with_chat_template(
        layout: PromptLayout,
        chat_template: ChatTemplate,
        prefix: &str,
        tokenizer: &TextTokenizer,
    ) -> Result<Self, Error> {
        let format =
            EvaluationFormat::for_conclusion().with_prefix(prefix).with_prefix(&chat_template.lead);
        let format = format.tokenize(tokenizer)?.into();
        Ok(Self { merge: MergePrompts::new(layout)?.with_chat_template(chat_template), format })
    }

    /// Builds the task of one pair in one presentation order from the branch evaluations in that
    /// order.
    pub fn task(
        &self,
        input: &JudgeInput,
        image: Option<&Arc<ImageTokens>>,
        evaluations: &[BranchEvaluation],
        tokenizer: &TextTokenizer,
    ) -> Result<GenerationTask, Error> {
        let texts = Aspect::ALL.map(|aspect| render_evaluation(aspect, evaluations));
        let pieces = self.merge.pieces(input, &texts)?;
        Ok(GenerationTask {
            member: CONCLUSION_MEMBER,
            prompt: StagedPrompt::new(&pieces, tokenizer)?,
            image: image.cloned(),
            format: self.format.clone(),
        })
    }
}

/// Renders an evaluation in the format in which it was generated.
fn render_evaluation(aspect: Aspect, evaluations: &[BranchEvaluation]) -> Vec<PromptPiece> {
    let evaluation = evaluations.iter().find(|e| e.aspect == aspect);
    let ratings: Vec<(String, u8)> = evaluation
        .into_iter()
        .flat_map(|e| (0..2).flat_map(move |r| e.ratings.iter().map(move |(_, pair)| &pair[r])))
        .map(|rating| (rating.analysis.clone(), rating.score.value))
        .collect();
    EvaluationFormat::for_aspect(aspect).render_pieces(&ratings)
}
