//! A line of `evaluations.jsonl` and of `rejected.jsonl`.

use serde::Serialize;

use super::verdict_check::{Rejection, shown_models};
use crate::judging::judge::recorded_verdict::{RecordedLookup, RecordedOrder};
use crate::judging::run::record::RecordSubject;
use crate::training::preferences::prompt_text;
use crate::training::preferences::recorded_evaluations::RecordedEvaluation;

/// An accepted evaluation of one member.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CollectedEvaluation {
    /// Identifies the evaluation in its file.
    pub id: String,
    /// Id of the case.
    pub case: Option<String>,
    /// The models of the responses, in the order in which they are shown.
    pub models: Vec<String>,
    /// The member that is trained on it: an aspect of the rubric, or `conclusion`.
    pub member: &'static str,
    /// The aspect, or `conclusion`.
    pub aspect: &'static str,
    /// The prompt.
    pub prompt: String,
    /// The evaluation.
    pub completion: String,
    /// The image of the prompt, if it has one.
    pub images: Vec<String>,
    /// The scores, in the order of the text.
    pub scores: Vec<u8>,
    /// The reference answer, if it is known. Prompts that hide it do not contain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The questions that the teacher looked up for this evaluation, with the ids of the passages it read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lookups: Vec<RecordedLookup>,
}

/// An evaluation, or a record without one, that is not used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RejectedEvaluation {
    /// Id of the case.
    pub case: Option<String>,
    /// The models of the responses, in the order in which they were shown.
    pub models: Vec<String>,
    /// Why it is not used.
    #[serde(flatten)]
    pub rejection: Rejection,
    /// Number of the record, from 1.
    pub record: u64,
}

/// What a line states besides the record.
pub(super) struct LineContent<'a> {
    /// Name of the member.
    pub(super) aspect: &'static str,
    /// What it wrote.
    pub(super) completion: String,
    /// The image in the folder of the evaluations.
    pub(super) image: Option<&'a str>,
}

impl CollectedEvaluation {
    /// Creates the line of an evaluation.
    pub(super) fn new(
        subject: &RecordSubject,
        order: &RecordedOrder,
        recorded: RecordedEvaluation,
        content: LineContent<'_>,
    ) -> Self {
        let LineContent { aspect, completion, image } = content;
        let RecordedEvaluation { evaluation, prompt, .. } = recorded;
        let models = shown_models(subject, order);
        let case = subject.case.clone();
        let name = case.as_deref().unwrap_or_default();
        Self {
            id: format!("{name}/{}/{aspect}", models.join("/")),
            case,
            models,
            member: aspect,
            aspect,
            prompt: prompt_text(&prompt.pieces),
            completion,
            images: image.map(str::to_owned).into_iter().collect(),
            scores: evaluation.ratings.into_iter().map(|(_, score)| score).collect(),
            reference: subject.reference.clone(),
            lookups: evaluation.lookups.into_iter().flatten().collect(),
        }
    }
}
