//! Conclusion model: merges three evaluations into the final scores.

use std::sync::Arc;

use acem3_experts::generate::{GenerationTask, ImageTokens};
use acem3_experts::prompt::{
    ChatTemplate, EvaluationFormat, Form, JudgeInput, PromptForm, PromptLayout, PromptPiece,
    StagedPrompt, TokenStep,
};
use acem3_experts::{Aspect, BranchEvaluation, Error, TextTokenizer};

use crate::merge::MergePrompts;

/// Index of the conclusion model among the heads of an engine, after the three branch experts.
pub const CONCLUSION_MEMBER: usize = Aspect::ALL.len();

/// Builds the generation tasks of the conclusion model.
pub struct ConclusionModel {
    merge: MergePrompts,
    form: Form,
    format: Arc<[TokenStep]>,
}

impl ConclusionModel {
    /// Creates the conclusion model of pairs in a layout, without a chat template.
    pub fn new(layout: PromptLayout, tokenizer: &TextTokenizer) -> Result<Self, Error> {
        let chat_template = ChatTemplate::default();
        Self::with_chat_template(PromptForm::pair(layout), chat_template, "", tokenizer)
    }

    /// Creates the conclusion model of a form with a chat template. `prefix`: first text of the
    /// completion, a reward token or empty.
    ///
    /// # Errors
    /// If the form has no conclusion model.
    pub fn with_chat_template(
        prompt_form: PromptForm,
        chat_template: ChatTemplate,
        prefix: &str,
        tokenizer: &TextTokenizer,
    ) -> Result<Self, Error> {
        let form = prompt_form.form;
        let format = EvaluationFormat::for_final_scores(form)
            .with_prefix(prefix)
            .with_prefix(&chat_template.lead);
        let format = format.tokenize(tokenizer)?.into();
        let merge = MergePrompts::for_form(prompt_form)?.with_chat_template(chat_template);
        Ok(Self { merge, form, format })
    }

    /// Builds the task of a case in one presentation order from the branch evaluations in that
    /// order.
    pub fn task(
        &self,
        input: &JudgeInput,
        image: Option<&Arc<ImageTokens>>,
        evaluations: &[BranchEvaluation],
        tokenizer: &TextTokenizer,
    ) -> Result<GenerationTask, Error> {
        let texts = Aspect::ALL.map(|aspect| render_evaluation(self.form, aspect, evaluations));
        let pieces = self.merge.pieces(input, &texts)?;
        Ok(GenerationTask {
            member: CONCLUSION_MEMBER,
            prompt: StagedPrompt::new(&pieces, input.text_count(), tokenizer)?,
            image: image.cloned(),
            format: self.format.clone(),
        })
    }
}

/// Renders an evaluation in the format in which it was generated.
fn render_evaluation(
    form: Form,
    aspect: Aspect,
    evaluations: &[BranchEvaluation],
) -> Vec<PromptPiece> {
    let evaluation = evaluations.iter().find(|e| e.aspect == aspect);
    let ratings: Vec<(String, u8)> = evaluation
        .into_iter()
        .flat_map(|e| {
            (0..form.responses())
                .flat_map(move |r| e.ratings.iter().filter_map(move |(_, all)| all.get(r)))
        })
        .map(|rating| (rating.analysis.clone(), rating.score.value))
        .collect();
    EvaluationFormat::for_expert(form, aspect).render_pieces(&ratings)
}
