//! A verdict as what each member should have written: a prompt and the evaluation that follows it.

use acem3_conclusion::MergePrompts;
use acem3_experts::Aspect;
use acem3_experts::prompt::{BranchPrompts, Format, JudgeInput, Piece, Rubric};
use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::checkpoints::panel::definition::MEMBERS;
use crate::judging::judge::PairJob;
use crate::judging::judge::recorded_verdict::{RecordedOrder, ScorePair};
use crate::training::TrainConfig;
use crate::training::preferences::{EvaluationRatings, IMAGE, prompt_text};

/// What one member learns from one presentation of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemberCompletion {
    /// The member's name.
    pub(super) member: &'static str,
    /// What it reads.
    pub(super) prompt: String,
    /// What its prompt begins and ends with whatever the other members wrote.
    frame: [String; 2],
    /// What it should write.
    pub(super) completion: String,
    /// Whether the second response of the pair is shown first.
    pub(super) swapped: bool,
}

/// Stands where an evaluation does; no text has such a letter.
const HERE: &str = "\u{0}";

impl MemberCompletion {
    /// Whether its prompt can be read again: what a question or an answer says is not to be taken for the image.
    pub(super) fn is_readable(&self, image: bool) -> bool {
        self.prompt.matches(IMAGE).count() == usize::from(image)
    }

    /// Whether a line of evaluations teaches this member about this presentation. Its image is not looked at.
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

/// Writes lessons in the prompts that a panel is trained with.
pub(super) struct CompletionBuilder {
    branches: BranchPrompts,
    merge: MergePrompts,
    /// What every answer in the dialogue begins with.
    lead: String,
}

impl CompletionBuilder {
    /// The tutor of the panels that a configuration trains.
    pub(super) fn new(config: &TrainConfig) -> Result<Self> {
        let dialogue = &config.dialogue;
        let branches = BranchPrompts::new(config.layout, Rubric::built_in()?, config.rubric)?;
        Ok(Self {
            branches: branches.inside(dialogue.clone()),
            merge: MergePrompts::new(config.layout)?.inside(dialogue.clone()),
            lead: dialogue.lead.clone(),
        })
    }

    /// What all members learn from one presentation of a pair.
    ///
    /// # Errors
    /// Where it has scores without reasons.
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

    /// What the conclusion reads before the first evaluation and behind the last one.
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

/// The ratings of an aspect as they were written: all criteria of the response shown first, then of the other.
fn branch(order: &RecordedOrder, aspect: Aspect) -> Result<EvaluationRatings> {
    let marks = order.aspects.get(&aspect);
    let rated = aspect.criteria().iter().map(|criterion| {
        let marks = marks.and_then(|marks| marks.get(criterion));
        let marks = marks.with_context(|| format!("it has no {}", criterion.key()))?;
        presented(marks, order.swapped)
    });
    let rated: Vec<[(String, u8); 2]> = rated.collect::<Result<_>>()?;
    let of = |place: usize| rated.iter().map(move |pair| pair[place].clone());
    Ok(of(0).chain(of(1)).collect())
}

/// Both marks with their reasons, in the order in which the responses were shown.
fn presented(marks: &ScorePair, swapped: bool) -> Result<[(String, u8); 2]> {
    let analyses = marks.analyses.as_ref();
    let analyses =
        analyses.context("it has scores without reasons, from which nothing is learned")?;
    let mut pair = [0, 1].map(|r| (analyses[r].clone(), marks.scores[r]));
    if swapped {
        pair.reverse();
    }
    Ok(pair)
}
