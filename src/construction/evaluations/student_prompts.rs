//! The prompts of the members that are trained, and the evaluations that they shall write.

use acem3_conclusion::MergePrompts;
use acem3_experts::prompt::{
    BranchPrompts, ChatTemplate, EvaluationFormat, Form, JudgeInput, PromptForm, PromptPiece,
    Rubric, RubricDetail,
};
use anyhow::{Context as _, Result, bail};

use crate::checkpoints::panel::prompt_config::CONCLUSION;
use crate::judging::judge::recorded_verdict::{RecordedLookup, RecordedOrder, ResponseScores};
use crate::judging::run::record::RecordSubject;
use crate::training::preferences::prompt_text;

/// How the trained members are prompted.
#[derive(Clone, Debug)]
pub struct StudentSettings {
    /// Form of judging, layout, and whether the prompts show the reference.
    pub prompt_form: PromptForm,
    /// The rubric.
    pub rubric: Rubric,
    /// Level of detail of the rubric in prompts.
    pub detail: RubricDetail,
    /// Chat template of the base model.
    pub chat_template: ChatTemplate,
}

/// Builds the prompts and completions of the trained members.
pub(super) struct StudentPrompts {
    settings: StudentSettings,
    branches: BranchPrompts,
    /// `None` if the form has no conclusion.
    merge: Option<MergePrompts>,
}

/// What a member reads and what it shall write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberEvaluation {
    /// Name of the member: an aspect of the rubric, or the conclusion.
    pub member: &'static str,
    /// The prompt.
    pub prompt: String,
    /// The evaluation.
    pub completion: String,
    /// The scores in the evaluation, in the order of the text.
    pub scores: Vec<u8>,
    /// The questions that the teacher looked up for it. The evaluation does not contain them.
    pub lookups: Vec<RecordedLookup>,
}

/// Analyses and scores of an evaluation, in the order of its text.
type Ratings = Vec<(String, u8)>;

impl StudentPrompts {
    /// Creates the prompts.
    ///
    /// # Errors
    ///
    /// A text of the rubric or of the layout is malformed.
    pub(super) fn new(settings: StudentSettings) -> Result<Self> {
        let StudentSettings { prompt_form, rubric, detail, chat_template } = settings.clone();
        let branches = BranchPrompts::for_form(prompt_form, rubric.clone(), detail)?;
        let merge = match prompt_form.form {
            Form::Correctness => None,
            _ => Some(
                MergePrompts::for_form(prompt_form, rubric)?
                    .with_chat_template(chat_template.clone()),
            ),
        };
        Ok(Self { settings, branches: branches.with_chat_template(chat_template), merge })
    }

    /// Builds the evaluations of all members for one presentation order of a record.
    ///
    /// # Errors
    ///
    /// The record has no question or responses, or an evaluation lacks a score or an analysis.
    pub(super) fn evaluations(
        &self,
        subject: &RecordSubject,
        order: &RecordedOrder,
    ) -> Result<Vec<MemberEvaluation>> {
        let StudentSettings { prompt_form, rubric, .. } = &self.settings;
        let texts = subject.responses.as_deref().context("the record has no responses")?;
        let shown = shown_order(order, texts.len());
        let input = JudgeInput {
            has_image: subject.image.is_some(),
            question: subject.question.as_deref().context("the record has no question")?,
            reference: subject.reference.as_deref().filter(|_| prompt_form.shows_reference),
            responses: shown.iter().filter_map(|i| texts.get(*i).map(String::as_str)).collect(),
        };
        if prompt_form.shows_reference && input.reference.is_none() {
            bail!("the case has no reference, and the prompts show it");
        }
        if prompt_form.form == Form::Correctness {
            let ratings = ratings_of(&order.conclusion, &shown)?;
            let experts = rubric.experts(prompt_form.form);
            let (_, aspect) = experts.first().context("the rubric has no aspect")?;
            let format = EvaluationFormat::for_correctness();
            let prompt = self.branches.pieces(aspect.key, &input)?;
            let lookups = lookups_of(&order.conclusion);
            let evaluation = self.evaluation(aspect.key.key(), &prompt, &format, ratings);
            return Ok(vec![MemberEvaluation { lookups, ..evaluation }]);
        }
        let words = rubric.score_words();
        let (mut members, mut texts) = (Vec::new(), Vec::new());
        for aspect in &rubric.aspects {
            let scores = order.aspects.get(&aspect.key);
            let by_criterion = aspect.criteria.iter().map(|criterion| {
                let scores = scores.and_then(|scores| scores.get(&criterion.key));
                let scores =
                    scores.with_context(|| format!("no score for {}", criterion.key.key()))?;
                ratings_of(scores, &shown)
            });
            let by_criterion: Vec<Ratings> = by_criterion.collect::<Result<_>>()?;
            let of_response = |place: usize| {
                by_criterion.iter().filter_map(move |ratings| ratings.get(place).cloned())
            };
            let ratings: Ratings = (0..shown.len()).flat_map(of_response).collect();
            let format = EvaluationFormat::for_expert(shown.len(), aspect, words);
            texts.push(format.render_pieces(&ratings));
            let prompt = self.branches.pieces(aspect.key, &input)?;
            let lookups = scores.into_iter().flat_map(|all| all.values()).flat_map(lookups_of);
            let evaluation = self.evaluation(aspect.key.key(), &prompt, &format, ratings);
            members.push(MemberEvaluation { lookups: lookups.collect(), ..evaluation });
        }
        if let Some(merge) = &self.merge {
            let format = EvaluationFormat::for_final_scores(shown.len(), words);
            let prompt = merge.pieces(&input, &texts)?;
            let ratings = ratings_of(&order.conclusion, &shown)?;
            let lookups = lookups_of(&order.conclusion);
            let evaluation = self.evaluation(CONCLUSION, &prompt, &format, ratings);
            members.push(MemberEvaluation { lookups, ..evaluation });
        }
        Ok(members)
    }

    fn evaluation(
        &self,
        member: &'static str,
        prompt: &[PromptPiece],
        format: &EvaluationFormat,
        ratings: Ratings,
    ) -> MemberEvaluation {
        let format = format.clone().with_prefix(&self.settings.chat_template.lead);
        MemberEvaluation {
            member,
            prompt: prompt_text(prompt),
            completion: prompt_text(&format.render_pieces(&ratings)),
            scores: ratings.into_iter().map(|(_, score)| score).collect(),
            lookups: Vec::new(),
        }
    }
}

/// Returns the indices of the responses in the order in which they were shown.
pub(super) fn shown_order(order: &RecordedOrder, responses: usize) -> Vec<usize> {
    let first = order.first_shown.unwrap_or(usize::from(order.swapped));
    let mut shown: Vec<usize> = (0..responses).collect();
    if first < responses {
        shown.rotate_left(first);
    }
    shown
}

/// Returns the questions that were looked up for some scores.
fn lookups_of(scores: &ResponseScores) -> Vec<RecordedLookup> {
    scores.lookups.iter().flatten().flatten().cloned().collect()
}

/// Returns the analyses and scores of the responses in the order in which they were shown.
fn ratings_of(scores: &ResponseScores, shown: &[usize]) -> Result<Ratings> {
    let analyses = scores.analyses.as_ref().context("scores without analyses")?;
    let rating = |i: &usize| Some((analyses.get(*i)?.clone(), *scores.scores.get(*i)?));
    let ratings: Option<Ratings> = shown.iter().map(rating).collect();
    ratings.context("fewer scores than responses")
}
