//! The evaluations of all members in one presentation order of a recorded verdict, with the prompts that
//! ask for them.

use acem3_experts::prompt::{EvaluationFormat, Form, JudgeInput, PromptPiece, render_free_text};
use acem3_experts::{Aspect, Criterion};
use anyhow::Result;

use super::prompt_style::{StyledPrompt, StyledPrompts};
use crate::judging::judge::recorded_verdict::{RecordedLookup, RecordedOrder, ResponseScores};
use crate::judging::knowledge::AskedEvidence;
use crate::judging::run::record::RecordSubject;
use crate::training::preferences::negatives::EvaluationRatings;
use crate::training::preferences::prompt_text;

/// A member that evaluated responses.
pub(crate) struct EvaluatedMember {
    /// Index of the member.
    pub(crate) index: usize,
    /// Aspect that it evaluates; `None` for the conclusion model.
    pub(crate) aspect: Option<Aspect>,
    /// Criteria of its evaluation; empty if it gives one score for each response.
    pub(crate) criteria: Vec<Criterion>,
}

/// Evaluation of a member.
pub(crate) struct PresentedEvaluation {
    /// Analyses and scores in the order in which the responses were shown.
    pub(crate) ratings: EvaluationRatings,
    /// The questions of each analysis.
    pub(crate) lookups: Vec<Vec<RecordedLookup>>,
    /// Mean score of each response, in the order of the record.
    pub(crate) scores: Vec<f64>,
}

/// What a member read and wrote.
pub(crate) struct RecordedEvaluation {
    /// The member.
    pub(crate) member: EvaluatedMember,
    /// What it wrote.
    pub(crate) evaluation: PresentedEvaluation,
    /// The prompt in the style of the builder.
    pub(crate) prompt: StyledPrompt,
    /// The format of the evaluation.
    pub(crate) format: EvaluationFormat,
}

impl RecordedEvaluation {
    /// Returns what the member wrote, after the start of every completion in the chat template.
    /// `evidence`: writes its questions and the evidence; `None` to leave them out.
    ///
    /// # Errors
    /// The index cannot be read.
    pub(crate) fn completion(&self, evidence: Option<&AskedEvidence>) -> Result<String> {
        let ratings = self.evaluation.ratings.iter().zip(&self.evaluation.lookups);
        let free_texts = ratings.map(|((analysis, score), lookups)| {
            let text = match evidence {
                Some(evidence) => evidence.render(analysis, lookups)?,
                None => render_free_text(analysis),
            };
            Ok((text, *score))
        });
        let free_texts = free_texts.collect::<Result<Vec<_>>>()?;
        let format = self.format.clone().with_prefix(&self.prompt.lead);
        Ok(prompt_text(&format.render_free_texts(free_texts)))
    }
}

/// What a record lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissingPart {
    /// The text or a score of a response.
    Response,
    /// Analyses: the run wrote scores only.
    Analyses,
    /// Scores that fit the analyses: they are means over several samples.
    FittingScores,
    /// The criteria of the rubric.
    Criteria,
    /// The reference answer, which the prompts show.
    Reference,
}

impl MissingPart {
    /// Returns the problem as text.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Response => "the record lacks a response",
            Self::Analyses => "no analyses (the run had --scores-only)",
            Self::FittingScores => {
                "scores that are means over several samples (judge with --samples 1)"
            }
            Self::Criteria => "other criteria than the rubric (see --rubric)",
            Self::Reference => "the case has no reference, and the prompts show it",
        }
    }
}

impl EvaluatedMember {
    /// Returns the aspect whose labels the evaluation is compared with; `None` for the final labels.
    pub(crate) fn target(&self) -> Option<Aspect> {
        self.aspect.filter(|_| !self.criteria.is_empty())
    }

    /// Returns the scores of the member, one for each criterion, or the final ones.
    pub(crate) fn scores<'a>(
        &self,
        order: &'a RecordedOrder,
    ) -> Result<Vec<&'a ResponseScores>, MissingPart> {
        let Some(aspect) = self.target() else {
            return Ok(vec![&order.conclusion]);
        };
        let of_aspect = order.aspects.get(&aspect).ok_or(MissingPart::Criteria)?;
        let scores = self.criteria.iter().map(|criterion| of_aspect.get(criterion));
        scores.collect::<Option<Vec<_>>>().ok_or(MissingPart::Criteria)
    }
}

impl PresentedEvaluation {
    /// Reads the evaluation of a member.
    pub(crate) fn of_order(
        order: &RecordedOrder,
        member: &EvaluatedMember,
    ) -> Result<Self, MissingPart> {
        let by_criterion = member.scores(order)?;
        let (mut ratings, mut lookups) = (Vec::new(), Vec::new());
        for response in order.shown_responses() {
            for scores in &by_criterion {
                if scores.alternatives.is_some() {
                    return Err(MissingPart::FittingScores);
                }
                let analyses = scores.analyses.as_ref().ok_or(MissingPart::Analyses)?;
                let analysis = analyses.get(response).ok_or(MissingPart::Response)?;
                let score = scores.scores.get(response).ok_or(MissingPart::Response)?;
                if analysis.trim().is_empty() {
                    return Err(MissingPart::Analyses);
                }
                ratings.push((analysis.clone(), *score));
                let asked = scores.lookups.as_ref().and_then(|all| all.get(response));
                lookups.push(asked.cloned().unwrap_or_default());
            }
        }
        let responses = order.conclusion.scores.len();
        Ok(Self { ratings, lookups, scores: mean_scores(&by_criterion, responses) })
    }
}

impl StyledPrompts {
    /// Returns the members that judge in this form: the experts, then the conclusion model.
    pub(crate) fn evaluated_members(&self) -> Vec<EvaluatedMember> {
        let experts = self.experts().into_iter().map(|(index, aspect)| EvaluatedMember {
            index,
            aspect: Some(aspect.key),
            criteria: match self.form() {
                Form::Correctness => Vec::new(),
                _ => aspect.criteria.iter().map(|criterion| criterion.key).collect(),
            },
        });
        let conclusion = self.conclusion().map(|index| EvaluatedMember {
            index,
            aspect: None,
            criteria: Vec::new(),
        });
        experts.chain(conclusion).collect()
    }

    /// Returns the evaluations of one presentation order of a record, or what the record lacks.
    ///
    /// # Errors
    /// A text of the program is damaged.
    pub(crate) fn recorded_evaluations(
        &self,
        subject: &RecordSubject,
        order: &RecordedOrder,
    ) -> Result<Result<Vec<RecordedEvaluation>, MissingPart>> {
        match self.input(subject, order) {
            Ok(input) => self.presented_evaluations(&input, order),
            Err(missing) => Ok(Err(missing)),
        }
    }

    /// Returns the evaluations of one presentation order of responses, or what the verdict lacks.
    ///
    /// # Errors
    /// A text of the program is damaged.
    pub(crate) fn presented_evaluations(
        &self,
        input: &JudgeInput<'_>,
        order: &RecordedOrder,
    ) -> Result<Result<Vec<RecordedEvaluation>, MissingPart>> {
        let members = self.evaluated_members();
        let evaluations = members.iter().map(|m| PresentedEvaluation::of_order(order, m));
        let evaluations: Vec<PresentedEvaluation> = match evaluations.collect() {
            Ok(evaluations) => evaluations,
            Err(missing) => return Ok(Err(missing)),
        };
        let format = |member: &EvaluatedMember| self.format(member.index, input.responses.len());
        let written: Vec<Vec<PromptPiece>> = (members.iter().zip(&evaluations))
            .filter(|(member, _)| member.aspect.is_some())
            .map(|(member, evaluation)| format(member).render_pieces(&evaluation.ratings))
            .collect();
        let recorded = members.into_iter().zip(evaluations).map(|(member, evaluation)| {
            let prompt = self.prompt(member.index, input, &written)?;
            let format = format(&member);
            Ok(RecordedEvaluation { member, evaluation, prompt, format })
        });
        Ok(Ok(recorded.collect::<Result<_>>()?))
    }

    /// Returns what the members see of the responses in one presentation order.
    fn input<'a>(
        &self,
        subject: &'a RecordSubject,
        order: &RecordedOrder,
    ) -> Result<JudgeInput<'a>, MissingPart> {
        let texts = subject.responses.as_deref().unwrap_or_default();
        let shown = order.shown_responses().into_iter();
        let responses = shown.map(|i| texts.get(i).map(String::as_str));
        let reference = subject.reference.as_deref().filter(|_| self.shows_reference());
        if self.shows_reference() && reference.is_none() {
            return Err(MissingPart::Reference);
        }
        Ok(JudgeInput {
            has_image: subject.image.is_some(),
            question: subject.question.as_deref().unwrap_or_default(),
            reference,
            responses: responses.collect::<Option<_>>().ok_or(MissingPart::Response)?,
        })
    }
}

fn mean_scores(by_criterion: &[&ResponseScores], responses: usize) -> Vec<f64> {
    let mean = |response: usize| {
        let scores = by_criterion.iter().filter_map(|scores| scores.scores.get(response));
        let sum: f64 = scores.map(|score| f64::from(*score)).sum();
        sum / by_criterion.len().max(1) as f64
    };
    (0..responses).map(mean).collect()
}
