//! Responses in one presentation order, while the members of a panel judge them.

use std::sync::Arc;

use acem3_conclusion::OrderVerdict;
use acem3_experts::generate::{GenerationTask, ImageTokens};
use acem3_experts::prompt::{Form, JudgeInput, Rubric};
use acem3_experts::{BranchExperts, Error, Rating};
use anyhow::{Context as _, Result};

use crate::data::cases::UnscoredReason;
use crate::judging::judge::Unscored;
use crate::judging::panel::trunk_group::TrunkGroup;

/// Ratings of a member, or its error.
type MemberOutput = Result<Vec<Rating>, Error>;

/// Image tokens for each trunk group; `None` for text-only groups.
pub(super) type GroupImages = Vec<Option<Arc<ImageTokens>>>;

/// Responses in one presentation order: two, or one alone.
pub(super) struct ResponsePass<'a> {
    /// Index of the job.
    pub(super) job: usize,
    /// Index of the response that is shown first.
    rotation: usize,
    input: JudgeInput<'a>,
    /// The tokens of the image, or why the image cannot be judged.
    images: Result<GroupImages, Unscored>,
    /// Outputs of the experts, in the order of the aspects.
    experts: Vec<Option<MemberOutput>>,
    conclusion: Option<MemberOutput>,
}

impl<'a> ResponsePass<'a> {
    /// Creates a pass without outputs.
    pub(super) fn new(
        job: usize,
        rotation: usize,
        input: JudgeInput<'a>,
        images: Result<GroupImages, Unscored>,
        rubric: &Rubric,
    ) -> Self {
        let experts = rubric.aspects.iter().map(|_| None).collect();
        Self { job, rotation, input, images, experts, conclusion: None }
    }

    /// Returns the tasks of the experts that are members of a group, with their members.
    pub(super) fn expert_tasks(
        &self,
        group_index: usize,
        group: &TrunkGroup,
    ) -> Result<Vec<(usize, GenerationTask)>, Error> {
        let Ok(images) = &self.images else {
            return Ok(Vec::new());
        };
        let (input, image) = self.input_for(images, group_index);
        let tasks = group.branches.tasks(&input, image, group.engine.tokenizer())?;
        let with_heads = tasks.into_iter().filter_map(|mut task| {
            let member = task.member;
            task.member = group.head_index(member)?;
            Some((member, task))
        });
        Ok(with_heads.collect())
    }

    /// Returns the task of the conclusion model: `None` if it is not a member of the group, or if an
    /// expert has not ended or has failed.
    pub(super) fn conclusion_task(
        &self,
        group_index: usize,
        group: &TrunkGroup,
    ) -> Result<Option<GenerationTask>, Error> {
        let head = group.head_index(group.conclusion_member);
        let (Some(head), Some(conclusion), Ok(images)) = (head, &group.conclusion, &self.images)
        else {
            return Ok(None);
        };
        let mut evaluations = Vec::new();
        for (aspect, output) in conclusion.rubric().aspects.iter().zip(&self.experts) {
            let Some(Ok(ratings)) = output else {
                return Ok(None);
            };
            evaluations.push(BranchExperts::build_evaluation(aspect, ratings.clone()));
        }
        let (input, image) = self.input_for(images, group_index);
        let tokenizer = group.engine.tokenizer();
        let mut task = conclusion.task(&input, image, &evaluations, tokenizer)?;
        task.member = head;
        Ok(Some(task))
    }

    /// Stores the output of a member.
    pub(super) fn finish(&mut self, member: usize, output: MemberOutput) {
        match self.experts.get_mut(member) {
            Some(expert) => *expert = Some(output),
            None => self.conclusion = Some(output),
        }
    }

    /// Returns the verdict of this presentation order, or why there is none.
    ///
    /// # Errors
    /// A member failed for a reason that concerns all responses, or has no output.
    pub(super) fn into_order(
        self,
        form: Form,
        rubric: &Rubric,
    ) -> Result<Result<OrderVerdict, Unscored>> {
        if let Err(unscored) = self.images {
            return Ok(Err(unscored));
        }
        if form == Form::Correctness {
            // The answer of the expert is the verdict.
            let answer = self.experts.into_iter().flatten().next();
            return Ok(match answer.context("the panel has no member for medical knowledge")? {
                Ok(conclusion) => {
                    let branches = Vec::new();
                    Ok(OrderVerdict { swapped: false, first_shown: None, branches, conclusion })
                }
                Err(error) => Err(to_unscored(error)?),
            });
        }
        let mut branches = Vec::new();
        for (aspect, output) in rubric.aspects.iter().zip(self.experts) {
            match output.context("the panel has no member for an aspect")? {
                Ok(ratings) => branches.push(BranchExperts::build_evaluation(aspect, ratings)),
                Err(error) => return Ok(Err(to_unscored(error)?)),
            }
        }
        let ratings = match self.conclusion.context("the panel has no conclusion model")? {
            Ok(ratings) => ratings,
            Err(error) => return Ok(Err(to_unscored(error)?)),
        };
        Ok(Ok(OrderVerdict::from_presentation(form, self.rotation, branches, ratings)))
    }

    /// Returns the input for a trunk group. Text-only groups get no image.
    fn input_for<'b>(
        &self,
        images: &'b GroupImages,
        group: usize,
    ) -> (JudgeInput<'a>, Option<&'b Arc<ImageTokens>>) {
        let image = images.get(group).and_then(Option::as_ref);
        (JudgeInput { has_image: image.is_some(), ..self.input.clone() }, image)
    }
}

/// Converts errors about a single case (too long, values that are not finite) to unscored; returns
/// other errors.
pub(super) fn to_unscored(error: Error) -> Result<Unscored> {
    match error {
        Error::TooLong { .. } => Ok(Unscored::new(UnscoredReason::Truncated, error.to_string())),
        // A retry would fail again, and an error would end the run before the remaining cases.
        Error::NotFinite => Ok(Unscored::new(UnscoredReason::Refused, error.to_string())),
        error => Err(error.into()),
    }
}
