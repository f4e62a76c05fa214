//! Converts a verdict to training examples: for each member a prompt and the evaluation it should
//! write.

use acem3_experts::prompt::{Form, JudgeInput, PromptPiece};
use anyhow::{Result, anyhow};
use serde_json::{Map, Value};

use crate::judging::judge::JudgeJob;
use crate::judging::judge::recorded_verdict::RecordedOrder;
use crate::judging::knowledge::{AskedEvidence, JudgeKnowledge};
use crate::training::TrainConfig;
use crate::training::preferences::files::asked_questions::without_offer;
use crate::training::preferences::prompt_style::StyledPrompts;
use crate::training::preferences::recorded_evaluations::RecordedEvaluation;
use crate::training::preferences::{IMAGE_MARKER, PromptStyle, prompt_text};

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
    /// evaluation by the same member of the same pair in the same order. Does not compare images, nor
    /// whether the member may ask questions.
    pub(crate) fn replaces(&self, line: &Map<String, Value>) -> Result<bool> {
        let field = |name: &str| line.get(name).and_then(Value::as_str);
        let [before, after] = &self.around_evaluations;
        let before = &without_offer(before)?;
        let prompt = &without_offer(field("prompt").unwrap_or_default())?;
        let rest = prompt.strip_prefix(before.as_str());
        let has_same_frame = rest.is_some_and(|rest| rest.ends_with(after.as_str()));
        // Without evaluations in the prompt, `before` is the whole prompt.
        let has_same_prompt = has_same_frame && (!after.is_empty() || prompt == before);
        Ok(has_same_prompt && field("member").is_none_or(|member| member == self.member))
    }
}

/// Builds completions with the prompts that a panel is trained with.
pub(crate) struct CompletionBuilder {
    prompts: StyledPrompts,
    /// Writes questions and evidence into the completions; `None` to leave them out.
    evidence: Option<AskedEvidence>,
    sees_images: bool,
}

impl CompletionBuilder {
    /// Creates a builder for the panel that a training configuration describes. `evidence`: for a panel
    /// that may ask questions.
    pub(crate) fn new(config: &TrainConfig, evidence: Option<AskedEvidence>) -> Result<Self> {
        let style = PromptStyle::of_training(config, config.judging.to_rubric()?);
        let style = style.offering_knowledge(evidence.is_some());
        let sees_images = !config.model.is_text_only();
        Ok(Self { prompts: style.builder(Form::Pair, false)?, evidence, sees_images })
    }

    /// Returns where the panel looks up what it asks; `None` if it does not ask.
    pub(crate) fn knowledge(&self) -> Option<&JudgeKnowledge> {
        self.evidence.as_ref().map(AskedEvidence::knowledge)
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
        let responses = job.shown_pair(order.swapped);
        let input = JudgeInput::pair(job.image.is_some(), job.question(), responses);
        let evaluations = self.prompts.presented_evaluations(&input, order)?;
        let evaluations = evaluations.map_err(|missing| {
            anyhow!("the verdict cannot become a training example: {}", missing.text())
        })?;
        let completion = |recorded: RecordedEvaluation| {
            let prompt = prompt_text(&recorded.prompt.pieces);
            Ok(MemberCompletion {
                member: self.prompts.member_name(recorded.member.index),
                around_evaluations: match recorded.member.aspect {
                    Some(_) => [prompt.clone(), String::new()],
                    None => self.around_evaluations(recorded.member.index, &input)?,
                },
                prompt,
                completion: recorded.completion(self.evidence.as_ref())?,
                swapped: order.swapped,
            })
        };
        evaluations.into_iter().map(completion).collect()
    }

    /// Returns the text of the conclusion model's prompt before the first evaluation and after the
    /// last one.
    fn around_evaluations(&self, conclusion: usize, input: &JudgeInput) -> Result<[String; 2]> {
        let placeholder = || vec![PromptPiece::Trusted(PLACEHOLDER.to_owned())];
        let evaluations: Vec<_> = self.prompts.experts().iter().map(|_| placeholder()).collect();
        let prompt = prompt_text(&self.prompts.prompt(conclusion, input, &evaluations)?.pieces);
        let before = prompt.split(PLACEHOLDER).next().unwrap_or_default();
        let after = prompt.rsplit(PLACEHOLDER).next().unwrap_or_default();
        Ok([before.to_owned(), after.to_owned()])
    }
}
