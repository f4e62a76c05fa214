//! Converts a verdict to training examples: for each member a prompt and the evaluation it should write.

use acem3_conclusion::MergePrompts;
use acem3_experts::Aspect;
use acem3_experts::prompt::{BranchPrompts, Format, JudgeInput, Piece, Rubric};
use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::judging::judge::PairJob;
use crate::judging::judge::recorded_verdict::{RecordedOrder, ScorePair};
use crate::training::TrainConfig;
use crate::training::preferences::{EvaluationRatings, IMAGE, prompt_text};

/// Prompt and completion of one member for one presentation of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemberCompletion {
    /// The member's name.
    pub(super) member: &'static str,
    /// The member's prompt.
    pub(super) prompt: String,
    /// Start and end of the prompt that do not depend on the other members' evaluations.
    frame: [String; 2],
    /// The evaluation that the member should write.
    pub(super) completion: String,
    /// Whether the second response of the pair is shown first.
    pub(super) swapped: bool,
}

/// Placeholder for an evaluation; it occurs in no other text.
const HERE: &str = "\u{0}";

impl MemberCompletion {
    /// Returns true if the prompt can be parsed again, that is, if no text in it contains the image marker.
    pub(super) fn is_readable(&self, image: bool) -> bool {
        self.prompt.matches(IMAGE).count() == usize::from(image)
    }

    /// Returns true if a line is an evaluation of the same presentation for the same member. Does not compare images.
    pub(super) fn replaces(&self, line: &Map<String, Value>) -> bool {
        let text = |name: &str| line.get(name).and_then(Value::as_str);
        let [before, after] = &self.frame;
        let prompt = text("prompt").unwrap_or_default();
        let rest = prompt.strip_prefix(before.as_str());
        let framed = rest.is_some_and(|rest| rest.ends_with(after.as_str()));
        let whole = !after.is_empty() || prompt == before;
        framed && whole && text("member").is_none_or(|member| member == self.member)
    }
}

/// Builds completions with the prompts that a panel is trained with.
pub(super) struct CompletionBuilder {
    branches: BranchPrompts,
    merge: MergePrompts,
    /// Start of every answer in the chat template.
    lead: String,
}

impl CompletionBuilder {
    /// Creates a builder for the panels of a training configuration.
    pub(super) fn new(config: &TrainConfig) -> Result<Self> {
        let dialogue = &config.dialogue;
        let branches = BranchPrompts::new(config.layout, Rubric::built_in()?, config.rubric)?;
        Ok(Self {
            branches: branches.inside(dialogue.clone()),
            merge: MergePrompts::new(config.layout)?.inside(dialogue.clone()),
            lead: dialogue.lead.clone(),
        })
    }

    /// Builds the completions of all members for one presentation of a pair.
    ///
    /// # Errors
    /// If a score has no analysis.
    pub(super) fn lessons(
        &self,
        job: &PairJob,
        order: &RecordedOrder,
    ) -> Result<Vec<MemberCompletion>> {
        let mut responses = job.responses();
        if order.swapped {
            responses.reverse();
        }
        let input = JudgeInput {
            image: job.image.is_some(),
            question: job.question(),
            responses,
        };
        let mut lessons = Vec::new();
        let mut written = [const { Vec::new() }; 3];
        for (i, aspect) in Aspect::ALL.into_iter().enumerate() {
            let (format, ratings) = (Format::branch(aspect), branch(order, aspect)?);
            let prompt = self.branches.pieces(aspect, &input)?;
            written[i] = format.pieces(&ratings);
            let prompt = prompt_text(&prompt);
            lessons.push((prompt.clone(), [prompt, String::new()], format, ratings));
        }
        let concluded = presented(&order.conclusion, order.swapped)?;
        let prompt = prompt_text(&self.merge.pieces(&input, &written)?);
        let frame = self.around_evaluations(&input)?;
        lessons.push((prompt, frame, Format::conclusion(), concluded.into()));
        let lessons = MEMBERS.into_iter().zip(lessons);
        Ok(lessons
            .map(
                |(member, (prompt, frame, format, ratings))| MemberCompletion {
                    member,
                    prompt,
                    frame,
                    completion: self.completion(format, &ratings),
                    swapped: order.swapped,
                },
            )
            .collect())
    }

    /// Returns the text of the conclusion model's prompt before the first evaluation and after the last one.
    fn around_evaluations(&self, input: &JudgeInput) -> Result<[String; 2]> {
        let mark = || vec![Piece::Fixed(HERE.to_owned())];
        let prompt = self.merge.pieces(input, &[mark(), mark(), mark()])?;
        let prompt = prompt_text(&prompt);
        let before = prompt.split(HERE).next().unwrap_or_default();
        let after = prompt.rsplit(HERE).next().unwrap_or_default();
        Ok([before.to_owned(), after.to_owned()])
    }

    fn completion(&self, format: Format, ratings: &EvaluationRatings) -> String {
        let pieces: Vec<Piece> = format.led(&self.lead).pieces(ratings);
        prompt_text(&pieces)
    }
}

/// Returns the ratings of an aspect in writing order: all criteria of the response shown first, then of the other.
fn branch(order: &RecordedOrder, aspect: Aspect) -> Result<EvaluationRatings> {
    let marks = order.aspects.get(&aspect);
    let rated = aspect.criteria().iter().map(|criterion| {
        let marks = marks.and_then(|marks| marks.get(criterion));
        let marks =
            marks.with_context(|| format!("the verdict has no score for {}", criterion.key()))?;
        presented(marks, order.swapped)
    });
    let rated: Vec<[(String, u8); 2]> = rated.collect::<Result<_>>()?;
    let of = |place: usize| rated.iter().map(move |pair| pair[place].clone());
    Ok(of(0).chain(of(1)).collect())
}

/// Returns both scores with their analyses, in presentation order.
fn presented(marks: &ScorePair, swapped: bool) -> Result<[(String, u8); 2]> {
    let analyses = marks.analyses.as_ref();
    let analyses = analyses
        .context("the verdict has scores without analyses, expected an analysis for each score")?;
    let mut pair = [0, 1].map(|r| (analyses[r].clone(), marks.scores[r]));
    if swapped {
        pair.reverse();
    }
    Ok(pair)
}
