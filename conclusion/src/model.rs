//! Conclusion model: merges three evaluations into the final scores.

use std::sync::Arc;

use acem3_experts::generate::{GenerationTask, ImageTokens};
use acem3_experts::prompt::{
    EvaluationFormat, Form, FormatsByLength, JudgeInput, PromptLayout, PromptPiece, Rubric,
    StagedPrompt,
};
use acem3_experts::{BranchEvaluation, Error, TextTokenizer};

use crate::merge::MergePrompts;

/// Builds the generation tasks of the conclusion model.
pub struct ConclusionModel {
    merge: MergePrompts,
    formats: FormatsByLength,
}

impl ConclusionModel {
    /// Creates the conclusion model of pairs in a layout, without a chat template.
    pub fn new(layout: PromptLayout, tokenizer: &TextTokenizer) -> Result<Self, Error> {
        let merge = MergePrompts::new(layout)?;
        Self::with_prompts(Form::Pair, merge, "", tokenizer)
    }

    /// Creates the conclusion model of a form with these prompts. `prefix`: first text of the
    /// completion, a reward token or empty.
    pub fn with_prompts(
        form: Form,
        merge: MergePrompts,
        prefix: &str,
        tokenizer: &TextTokenizer,
    ) -> Result<Self, Error> {
        let formats = FormatsByLength::new(form, |responses| {
            EvaluationFormat::for_final_scores(responses, merge.rubric().score_words())
                .with_prefix(prefix)
                .with_prefix(&merge.chat_template().lead)
                .tokenize(tokenizer)
        })?;
        Ok(Self { merge, formats })
    }

    /// Returns the rubric.
    pub fn rubric(&self) -> &Rubric {
        self.merge.rubric()
    }

    /// Builds the task of a case in one presentation order from the branch evaluations in that
    /// order. The conclusion model is the member after the experts.
    pub fn task(
        &self,
        input: &JudgeInput,
        image: Option<&Arc<ImageTokens>>,
        evaluations: &[BranchEvaluation],
        tokenizer: &TextTokenizer,
    ) -> Result<GenerationTask, Error> {
        let rubric = self.merge.rubric();
        let (words, responses) = (rubric.score_words(), input.responses.len());
        let texts: Vec<Vec<PromptPiece>> = (rubric.aspects.iter())
            .map(|aspect| {
                let format = EvaluationFormat::for_expert(responses, aspect, words);
                let evaluation = evaluations.iter().find(|e| e.aspect == aspect.key);
                let texts = evaluation.map(|evaluation| evaluation.texts_in_order(responses));
                format.render_pieces(&texts.unwrap_or_default())
            })
            .collect();
        let pieces = self.merge.pieces(input, &texts)?;
        Ok(GenerationTask {
            member: rubric.aspects.len(),
            prompt: StagedPrompt::new(&pieces, input.text_count(), tokenizer)?,
            image: image.cloned(),
            format: self.formats.get(responses)?,
            samples: 1,
            opening: None,
        })
    }
}
