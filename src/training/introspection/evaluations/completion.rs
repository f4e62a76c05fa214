//! Converts a verdict to training examples: for each member a prompt and the evaluation it should
//! write.

use acem3_conclusion::MergePrompts;
use acem3_experts::Aspect;
use acem3_experts::prompt::{BranchPrompts, EvaluationFormat, JudgeInput, PromptPiece, Rubric};
use anyhow::Result;
use serde_json::{Map, Value};

use super::order_ratings::{aspect_ratings, conclusion_ratings};
use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::judging::judge::JudgeJob;
use crate::judging::judge::recorded_verdict::RecordedOrder;
use crate::training::TrainConfig;
use crate::training::preferences::{EvaluationRatings, IMAGE_MARKER, prompt_text};

/// Prompt and completion of one member for one presentation of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberCompletion {
    /// Name of the member.
    pub(crate) member: &'static str,
    /// Prompt of the member.
    pub(crate) prompt: String,
    /// Parts of the prompt before and after the other members' evaluations. If the prompt contains
    /// no evaluations, the first part is the whole prompt and the second is empty.
    around_evaluations: [String; 2],
    /// Evaluation that the member should write.
    pub(crate) completion: String,
    /// True if the second response of the pair is shown first.
    pub(crate) swapped: bool,
}

/// Placeholder for an evaluation. It does not occur in prompts.
const PLACEHOLDER: &str = "\u{0}";

impl MemberCompletion {
    /// Returns true if the image marker occurs only at the position of the image. Otherwise, the
    /// prompt cannot be parsed again.
    pub(crate) fn is_unambiguous(&self, has_image: bool) -> bool {
        self.prompt.matches(IMAGE_MARKER).count() == usize::from(has_image)
    }

    /// Returns true if this completion replaces a line of the training data: if the line is an
    /// evaluation by the same member of the same pair in the same order. Does not compare images.
    pub(crate) fn replaces(&self, line: &Map<String, Value>) -> bool {
        let field = |name: &str| line.get(name).and_then(Value::as_str);
        let [before, after] = &self.around_evaluations;
        let prompt = field("prompt").unwrap_or_default();
        let rest = prompt.strip_prefix(before.as_str());
        let has_same_frame = rest.is_some_and(|rest| rest.ends_with(after.as_str()));
        // Without evaluations in the prompt, `before` is the whole prompt.
        let has_same_prompt = has_same_frame && (!after.is_empty() || prompt == before);
        has_same_prompt && field("member").is_none_or(|member| member == self.member)
    }
}

/// Builds completions with the prompts that a panel is trained with.
pub(crate) struct CompletionBuilder {
    branches: BranchPrompts,
    merge: MergePrompts,
    /// Text that begins every answer in the chat template.
    lead: String,
    sees_images: bool,
}

impl CompletionBuilder {
    /// Creates a builder for the panel that a training configuration describes.
    pub(crate) fn new(config: &TrainConfig) -> Result<Self> {
        let template = &config.dialogue;
        let branches = BranchPrompts::new(config.layout, Rubric::built_in()?, config.rubric)?;
        Ok(Self {
            branches: branches.with_chat_template(template.clone()),
            merge: MergePrompts::new(config.layout)?.with_chat_template(template.clone()),
            lead: template.lead.clone(),
            sees_images: !config.model.is_text_only(),
        })
    }

    /// Returns true if the prompts show images.
    pub(crate) fn sees_images(&self) -> bool {
        self.sees_images
    }

    /// Builds the completions of all members for one presentation of a pair.
    ///
    /// # Errors
    /// If the verdict has no score for a criterion, or a score has no analysis.
    pub(crate) fn completions(
        &self,
        job: &JudgeJob,
        order: &RecordedOrder,
    ) -> Result<Vec<MemberCompletion>> {
        let mut responses = job.pair_texts();
        if order.swapped {
            responses.reverse();
        }
        let input =
            JudgeInput::pair(job.image.is_some() && self.sees_images, job.question(), responses);
        let mut parts = Vec::new();
        let mut evaluations = [const { Vec::new() }; 3];
        for (i, aspect) in Aspect::ALL.into_iter().enumerate() {
            let (format, ratings) =
                (EvaluationFormat::for_aspect(aspect), aspect_ratings(order, aspect)?);
            let prompt = self.branches.pieces(aspect, &input)?;
            evaluations[i] = format.render_pieces(&ratings);
            let prompt = prompt_text(&prompt);
            parts.push((prompt.clone(), [prompt, String::new()], format, ratings));
        }
        let conclusion = conclusion_ratings(order)?;
        let prompt = prompt_text(&self.merge.pieces(&input, &evaluations)?);
        let around_evaluations = self.around_evaluations(&input)?;
        parts.push((prompt, around_evaluations, EvaluationFormat::for_conclusion(), conclusion));
        let parts = MEMBERS.into_iter().zip(parts);
        Ok(parts
            .map(|(member, (prompt, around_evaluations, format, ratings))| MemberCompletion {
                member,
                prompt,
                around_evaluations,
                completion: self.completion(format, &ratings),
                swapped: order.swapped,
            })
            .collect())
    }

    /// Returns the text of the conclusion model's prompt before the first evaluation and after the
    /// last one.
    fn around_evaluations(&self, input: &JudgeInput) -> Result<[String; 2]> {
        let placeholder = || vec![PromptPiece::Trusted(PLACEHOLDER.to_owned())];
        let prompt = self.merge.pieces(input, &[placeholder(), placeholder(), placeholder()])?;
        let prompt = prompt_text(&prompt);
        let before = prompt.split(PLACEHOLDER).next().unwrap_or_default();
        let after = prompt.rsplit(PLACEHOLDER).next().unwrap_or_default();
        Ok([before.to_owned(), after.to_owned()])
    }

    /// Renders an evaluation after the lead of the chat template.
    fn completion(&self, format: EvaluationFormat, ratings: &EvaluationRatings) -> String {
        let pieces: Vec<PromptPiece> = format.with_prefix(&self.lead).render_pieces(ratings);
        prompt_text(&pieces)
    }
}
