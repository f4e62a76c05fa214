//! Converts a verdict to training examples: for each member a prompt and the evaluation it should
//! write.

use acem3_conclusion::MergePrompts;
use acem3_experts::Aspect;
use acem3_experts::prompt::{BranchPrompts, EvaluationFormat, JudgeInput, PromptPiece, Rubric};
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::judging::judge::JudgeJob;
use crate::judging::judge::recorded_verdict::{RecordedOrder, ResponseScores};
use crate::training::TrainConfig;
use crate::training::preferences::{EvaluationRatings, IMAGE_MARKER, prompt_text};

/// Prompt and completion of one member for one presentation of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemberCompletion {
    /// Name of the member.
    pub(super) member: &'static str,
    /// Prompt of the member.
    pub(super) prompt: String,
    /// Parts of the prompt before and after the other members' evaluations. If the prompt contains
    /// no evaluations, the first part is the whole prompt and the second is empty.
    around_evaluations: [String; 2],
    /// Evaluation that the member should write.
    pub(super) completion: String,
    /// True if the second response of the pair is shown first.
    pub(super) swapped: bool,
}

/// Placeholder for an evaluation. It does not occur in prompts.
const PLACEHOLDER: &str = "\u{0}";

impl MemberCompletion {
    /// Returns true if the image marker occurs only at the position of the image. Otherwise, the
    /// prompt cannot be parsed again.
    pub(super) fn is_unambiguous(&self, has_image: bool) -> bool {
        self.prompt.matches(IMAGE_MARKER).count() == usize::from(has_image)
    }

    /// Returns true if this completion replaces a line of the training data: if the line is an
    /// evaluation by the same member of the same pair in the same order. Does not compare images.
    pub(super) fn replaces(&self, line: &Map<String, Value>) -> bool {
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
pub(super) struct CompletionBuilder {
    branches: BranchPrompts,
    merge: MergePrompts,
    /// Text that begins every answer in the chat template.
    lead: String,
}

impl CompletionBuilder {
    /// Creates a builder for the panel that a training configuration describes.
    pub(super) fn new(config: &TrainConfig) -> Result<Self> {
        let template = &config.dialogue;
        let branches = BranchPrompts::new(config.layout, Rubric::built_in()?, config.rubric)?;
        Ok(Self {
            branches: branches.with_chat_template(template.clone()),
            merge: MergePrompts::new(config.layout)?.with_chat_template(template.clone()),
            lead: template.lead.clone(),
        })
    }

    /// Builds the completions of all members for one presentation of a pair.
    ///
    /// # Errors
    /// If the verdict has no score for a criterion, or a score has no analysis.
    pub(super) fn completions(
        &self,
        job: &JudgeJob,
        order: &RecordedOrder,
    ) -> Result<Vec<MemberCompletion>> {
        let mut responses = job.pair_texts();
        if order.swapped {
            responses.reverse();
        }
        let input = JudgeInput::pair(job.image.is_some(), job.question(), responses);
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
        let conclusion = in_presentation_order(&order.conclusion, order.swapped)?;
        let prompt = prompt_text(&self.merge.pieces(&input, &evaluations)?);
        let around_evaluations = self.around_evaluations(&input)?;
        parts.push((
            prompt,
            around_evaluations,
            EvaluationFormat::for_conclusion(),
            conclusion.into(),
        ));
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

/// Returns the ratings of an aspect in the order of the evaluation format: all criteria of the
/// response shown first, then all criteria of the other.
fn aspect_ratings(order: &RecordedOrder, aspect: Aspect) -> Result<EvaluationRatings> {
    let scores = order.aspects.get(&aspect);
    let by_criterion = aspect.criteria().iter().map(|criterion| {
        let scores = scores.and_then(|scores| scores.get(criterion));
        let scores =
            scores.with_context(|| format!("the verdict has no score for {}", criterion.key()))?;
        in_presentation_order(scores, order.swapped)
    });
    let by_criterion: Vec<[(String, u8); 2]> = by_criterion.collect::<Result<_>>()?;
    let of_response = |r: usize| by_criterion.iter().map(move |pair| pair[r].clone());
    Ok(of_response(0).chain(of_response(1)).collect())
}

/// Returns both scores with their analyses, in presentation order.
fn in_presentation_order(scores: &ResponseScores, swapped: bool) -> Result<[(String, u8); 2]> {
    let analyses = scores.analyses.as_ref();
    let analyses = analyses
        .context("the verdict has scores without analyses, expected an analysis for each score")?;
    let rating = |r: usize| Some((analyses.get(r)?.clone(), *scores.scores.get(r)?));
    let [Some(first), Some(second)] = [rating(0), rating(1)] else {
        bail!("the verdict has scores of one response, expected two");
    };
    Ok(if swapped { [second, first] } else { [first, second] })
}
