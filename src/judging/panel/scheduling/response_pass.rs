//! Responses in one presentation order, while the members of a panel judge them.

use std::sync::Arc;

use acem3_conclusion::OrderVerdict;
use acem3_experts::generate::{
    GenerationTask, ImageTokens, Opening, TextAlternative, WrittenOpening,
};
use acem3_experts::prompt::{Form, JudgeInput, Rubric};
use acem3_experts::{BranchExperts, Error};
use anyhow::{Context as _, Result, ensure};

use super::sample_combinations::{SampleCombination, combine_samples};
use crate::data::cases::UnscoredReason;
use crate::judging::judge::{JudgeJob, Unscored};
use crate::judging::panel::finding_settings::FindingSettings;
use crate::judging::panel::trunk_group::TrunkGroup;

/// Texts of a member, or its error.
pub(super) type MemberOutput = Result<Vec<TextAlternative>, Error>;

/// Image tokens for each trunk group; `None` for text-only groups.
pub(super) type GroupImages = Vec<Option<Arc<ImageTokens>>>;

/// A task of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PassTask {
    /// The evaluation of this member.
    Expert(usize),
    /// The evaluation of the expert that states the finding, written again with the finding of the other
    /// order.
    Exchanged,
    /// The conclusion on the combination of the experts' texts with this index.
    Conclusion(usize),
}

/// Responses in one presentation order: two, or one alone.
pub(super) struct ResponsePass {
    /// The job, without its image.
    job: JudgeJob,
    /// Index of the response that is shown first.
    rotation: usize,
    shows_reference: bool,
    /// The tokens of the image, or why the case cannot be judged.
    images: Result<GroupImages, Unscored>,
    /// Outputs of the experts, in the order of the aspects.
    experts: Vec<Option<MemberOutput>>,
    /// Output of [`PassTask::Exchanged`].
    exchanged: Option<MemberOutput>,
    /// Outputs of the conclusion model, one for each combination of the experts' texts.
    conclusions: Vec<CombinedTexts>,
    /// Number of samples of each text.
    samples: usize,
    /// Which analyses begin with a finding that the orders share.
    finding: Option<FindingSettings>,
}

/// Output of the conclusion model on a combination of the experts' texts.
struct CombinedTexts {
    combination: SampleCombination,
    output: Option<MemberOutput>,
}

/// What the passes of a job have in common.
#[derive(Clone)]
pub(super) struct PassInput {
    /// The job, without its image.
    pub(super) job: JudgeJob,
    /// True if the members see the reference answer.
    pub(super) shows_reference: bool,
    /// The tokens of the image, or why the image cannot be judged.
    pub(super) images: Result<GroupImages, Unscored>,
    /// Number of aspects of the rubric.
    pub(super) aspects: usize,
    /// Number of samples of each text.
    pub(super) samples: usize,
    /// Which analyses begin with a finding that the orders share.
    pub(super) finding: Option<FindingSettings>,
}

impl ResponsePass {
    /// Creates a pass without outputs. `rotation`: the index of the response that is shown first.
    pub(super) fn new(input: PassInput, rotation: usize) -> Self {
        let PassInput { job, shows_reference, images, aspects, samples, finding } = input;
        let experts = (0..aspects).map(|_| None).collect();
        let (exchanged, conclusions) = (None, Vec::new());
        Self {
            job,
            rotation,
            shows_reference,
            images,
            experts,
            exchanged,
            conclusions,
            samples,
            finding,
        }
    }

    /// Makes the case unscored.
    pub(super) fn refuse(&mut self, unscored: Unscored) {
        self.images = Err(unscored);
    }

    /// Returns the id of the case.
    pub(super) fn case_id(&self) -> &str {
        &self.job.case.id
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
            task.samples = self.samples;
            task.opening = self.opening(member, None);
            Some((member, task))
        });
        Ok(with_heads.collect())
    }

    /// Returns the task [`PassTask::Exchanged`]: the expert starts with `finding`, that of the other order.
    /// `None` if the expert is not a member of the group.
    pub(super) fn exchange_task(
        &self,
        group_index: usize,
        group: &TrunkGroup,
        finding: &WrittenOpening,
    ) -> Result<Option<GenerationTask>, Error> {
        let (Ok(images), Some(settings)) = (&self.images, &self.finding) else {
            return Ok(None);
        };
        let Some(head) = group.head_index(settings.member) else {
            return Ok(None);
        };
        let (input, image) = self.input_for(images, group_index);
        let tokenizer = group.engine.tokenizer();
        let task = group.branches.task_of(settings.member, &input, image, tokenizer)?;
        let opening = self.opening(settings.member, Some(finding));
        Ok(task.map(|task| GenerationTask { member: head, opening, ..task }))
    }

    /// Returns the opening of an expert's text: the given finding, or the most probable one. `None` if the
    /// expert states no finding.
    fn opening(&self, member: usize, finding: Option<&WrittenOpening>) -> Option<Opening> {
        let settings = self.finding.as_ref().filter(|settings| settings.member == member)?;
        let tokens = finding.map(|finding| Arc::clone(&finding.tokens));
        Some(Opening { end: Arc::clone(&settings.end), tokens })
    }

    /// Returns the output of an expert that has ended.
    pub(super) fn output(&self, member: usize) -> Option<&MemberOutput> {
        self.experts.get(member)?.as_ref()
    }

    /// Replaces the output of an expert.
    pub(super) fn replace_output(&mut self, member: usize, output: MemberOutput) {
        if let Some(place) = self.experts.get_mut(member) {
            *place = Some(output);
        }
    }

    /// Returns true if [`PassTask::Exchanged`] has ended.
    pub(super) fn has_exchanged(&self) -> bool {
        self.exchanged.is_some()
    }

    /// Takes the output of [`PassTask::Exchanged`].
    pub(super) fn take_exchanged(&mut self) -> Option<MemberOutput> {
        self.exchanged.take()
    }

    /// Returns the tasks of the conclusion model, one for each combination of the experts' texts: none
    /// if it is not a member of the group, or if an expert has not ended or has failed.
    pub(super) fn conclusion_tasks(
        &mut self,
        group_index: usize,
        group: &TrunkGroup,
    ) -> Result<Vec<GenerationTask>, Error> {
        let head = group.head_index(group.conclusion_member);
        let (Some(head), Some(conclusion), Ok(images)) = (head, &group.conclusion, &self.images)
        else {
            return Ok(Vec::new());
        };
        let outputs = self.experts.iter().map(|output| output.as_ref()?.as_deref().ok());
        let Some(experts) = outputs.collect::<Option<Vec<&[TextAlternative]>>>() else {
            return Ok(Vec::new());
        };
        let (input, image) = self.input_for(images, group_index);
        let tokenizer = group.engine.tokenizer();
        let combinations = combine_samples(&experts, self.samples);
        let to_task = |combination: &SampleCombination| {
            let texts = combination.texts.iter().zip(&experts);
            let texts = texts.map(|(text, alternatives)| alternatives.get(*text));
            let evaluations =
                conclusion.rubric().aspects.iter().zip(texts).map(|(aspect, text)| {
                    let ratings = text.map(|text| text.ratings.clone()).unwrap_or_default();
                    BranchExperts::build_evaluation(aspect, ratings)
                });
            let evaluations: Vec<_> = evaluations.collect();
            let task = conclusion.task(&input, image, &evaluations, tokenizer)?;
            Ok(GenerationTask { member: head, samples: combination.samples, ..task })
        };
        let tasks = combinations.iter().map(to_task).collect::<Result<_, Error>>()?;
        let without_output = |combination| CombinedTexts { combination, output: None };
        self.conclusions = combinations.into_iter().map(without_output).collect();
        Ok(tasks)
    }

    /// Stores the output of a task.
    pub(super) fn finish(&mut self, task: PassTask, output: MemberOutput) {
        let place = match task {
            PassTask::Expert(member) => self.experts.get_mut(member),
            PassTask::Exchanged => Some(&mut self.exchanged),
            PassTask::Conclusion(index) => self.conclusions.get_mut(index).map(|c| &mut c.output),
        };
        if let Some(place) = place {
            *place = Some(output);
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
                Ok(answers) => {
                    let conclusion = TextAlternative::average(answers);
                    let branches = Vec::new();
                    Ok(OrderVerdict { swapped: false, first_shown: None, branches, conclusion })
                }
                Err(error) => Err(to_unscored(error)?),
            });
        }
        let mut branches = Vec::new();
        for (aspect, output) in rubric.aspects.iter().zip(self.experts) {
            match output.context("the panel has no member for an aspect")? {
                Ok(texts) => {
                    let ratings = TextAlternative::average(texts);
                    branches.push(BranchExperts::build_evaluation(aspect, ratings));
                }
                Err(error) => return Ok(Err(to_unscored(error)?)),
            }
        }
        let mut texts = Vec::new();
        for CombinedTexts { combination, output } in self.conclusions {
            match output.context("the panel has no conclusion model")? {
                Ok(alternatives) => texts.extend(alternatives.into_iter().map(|text| {
                    let weight = combination.weight * text.weight;
                    TextAlternative { weight, ..text }
                })),
                Err(error) => return Ok(Err(to_unscored(error)?)),
            }
        }
        ensure!(!texts.is_empty(), "the panel has no conclusion model");
        let ratings = TextAlternative::average(texts);
        Ok(Ok(OrderVerdict::from_presentation(form, self.rotation, branches, ratings)))
    }

    /// Returns the input for a trunk group. Text-only groups get no image.
    fn input_for<'a>(
        &'a self,
        images: &'a GroupImages,
        group: usize,
    ) -> (JudgeInput<'a>, Option<&'a Arc<ImageTokens>>) {
        let image = images.get(group).and_then(Option::as_ref);
        (self.job.to_input(self.rotation, self.shows_reference, image.is_some()), image)
    }
}

/// Converts errors about a single case (too long, values that are not finite) to unscored; returns
/// other errors.
pub(in crate::judging::panel) fn to_unscored(error: Error) -> Result<Unscored> {
    match error {
        Error::TooLong { .. } => Ok(Unscored::new(UnscoredReason::Truncated, error.to_string())),
        // A retry would fail again, and an error would end the run before the remaining cases.
        Error::NotFinite | Error::Unencodable(_) => {
            Ok(Unscored::new(UnscoredReason::Refused, error.to_string()))
        }
        error => Err(error.into()),
    }
}
