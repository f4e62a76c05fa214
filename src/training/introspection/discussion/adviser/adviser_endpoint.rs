//! A model behind an `OpenAI`-compatible endpoint: `POST {base}/chat/completions`.
//!
//! The model receives the prompts of the panel's members with the full rubric and the format of
//! each evaluation. If an evaluation contradicts the labels, the next request includes them. If the
//! reviewer rejects it, the next request includes the evaluation and the reason.
//!
//! With a knowledge index the model may ask questions (Algorithm 1 of AutoMedEval): it is requested
//! again with the passages below the prompt.

use acem3_conclusion::{OrderVerdict, Verdict};
use acem3_experts::prompt::{
    EvaluationFormat, Form, JudgeInput, PromptLayout, PromptPiece, Rubric, RubricDetail,
};
use acem3_experts::{Aspect, BranchEvaluation, Rating, Score};
use anyhow::{Result, bail};

use super::discussed_pair::{DiscussedPair, Objection};
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::judging::knowledge::{JudgeKnowledge, KnowledgeRounds};
use crate::training::introspection::discussion::chat::chat_client::ChatClient;
use crate::training::introspection::discussion::chat::image_url::{encode_image_url, user_message};
use crate::training::introspection::discussion::chat::request_journal::RequestJournal;
use crate::training::preferences::prompt_style::StyledPrompts;
use crate::training::preferences::recorded_evaluations::{EvaluatedMember, PresentedEvaluation};
use crate::training::preferences::{PromptStyle, prompt_text};

/// Text between the ratings of an evaluation.
const SCORE_LABEL: &str = "Score:";

/// Evaluates pairs with a model behind an endpoint.
pub struct AdviserEndpoint {
    chat: ChatClient,
    knowledge: Option<JudgeKnowledge>,
    prompts: StyledPrompts,
    /// Lowest and highest score of the rubric.
    scores: [u8; 2],
}

/// Part of a request about a member's evaluation that is equal for all members.
struct EvaluationRequest<'a> {
    discussed: &'a DiscussedPair<'a>,
    /// URL of the image.
    image: Option<&'a str>,
    /// Text that states the labels; empty if they are not stated.
    hint: String,
    /// Earlier evaluation that the reviewer rejects.
    objection: Option<Objection<'a>>,
    swapped: bool,
}

/// An evaluation to request from the model in the place of a member.
struct RequestedEvaluation {
    /// Prompt of the member.
    pieces: Vec<PromptPiece>,
    format: EvaluationFormat,
    /// Earlier ratings that the reviewer rejects.
    earlier: Option<Vec<(String, u8)>>,
}

impl AdviserEndpoint {
    /// Creates an adviser that evaluates by a rubric, and looks up its questions in `knowledge`.
    ///
    /// # Errors
    /// If the built-in prompts are damaged.
    pub fn new(
        chat: ChatClient,
        knowledge: Option<JudgeKnowledge>,
        rubric: Rubric,
    ) -> Result<Self> {
        let scores = rubric.scores;
        let style = PromptStyle::of_layout(PromptLayout::CaseFirst, RubricDetail::Full, rubric);
        let style = style.offering_knowledge(knowledge.is_some());
        Ok(Self { chat, knowledge, prompts: style.builder(Form::Pair, false)?, scores })
    }

    /// Sends a short message, to report a wrong key, URL or model before the training starts.
    ///
    /// # Errors
    /// If the endpoint is unreachable, or rejects the key, the model or the message.
    pub(crate) fn check(&self) -> Result<()> {
        self.chat.check()
    }

    /// Returns the model, its URL, and the documents and limits of its knowledge.
    pub(crate) fn name(&self) -> String {
        let name = self.chat.name();
        match &self.knowledge {
            Some(knowledge) => format!("{name} with knowledge {}", knowledge.identity()),
            None => name,
        }
    }

    /// Evaluates a pair in both presentation orders. The inner `Err` is the reason why there is no
    /// evaluation.
    ///
    /// # Errors
    /// If the endpoint is unreachable, or rejects the key or the model.
    pub(crate) fn evaluate(
        &self,
        discussed: &DiscussedPair,
        journal: &mut RequestJournal,
    ) -> Result<Result<RecordedVerdict, String>> {
        let job = &discussed.misjudged.job;
        if let Err(reason) = self.chat.may_receive(job) {
            return Ok(Err(reason));
        }
        let image = encode_image_url(job)?;
        let mut orders = Vec::new();
        for swapped in [false, true] {
            let mut labels = discussed.misjudged.labels;
            if swapped {
                labels.reverse();
            }
            let request = EvaluationRequest {
                discussed,
                image: image.as_deref(),
                hint: if discussed.needs_labels() {
                    label_hint(labels, self.scores)
                } else {
                    String::new()
                },
                objection: discussed.objection(swapped),
                swapped,
            };
            match self.evaluate_order(&request, journal)? {
                Ok(order) => orders.push(order),
                Err(reason) => return Ok(Err(reason)),
            }
        }
        RecordedVerdict::from_verdict(&Verdict { orders }, Form::Pair).map(Ok)
    }

    /// Evaluates a pair in one presentation order.
    fn evaluate_order(
        &self,
        request: &EvaluationRequest,
        journal: &mut RequestJournal,
    ) -> Result<Result<OrderVerdict, String>> {
        let job = &request.discussed.misjudged.job;
        let responses = job.shown_pair(request.swapped);
        let input = JudgeInput::pair(request.image.is_some(), job.question(), responses);
        let (mut branches, mut evaluations) = (Vec::new(), Vec::new());
        let mut conclusion = Vec::new();
        for member in self.prompts.evaluated_members() {
            let format = self.prompts.format(member.index, input.responses.len());
            let pieces = self.prompts.prompt(member.index, &input, &evaluations)?.pieces;
            let earlier = |o: Objection| PresentedEvaluation::of_order(o.order, &member).ok();
            let earlier = request.objection.and_then(earlier).map(|earlier| earlier.ratings);
            let requested = RequestedEvaluation { pieces, format: format.clone(), earlier };
            let ratings = match self.ask(request, requested, journal)? {
                Ok(ratings) => ratings,
                Err(reason) => return Ok(Err(reason)),
            };
            match member.aspect {
                Some(aspect) => {
                    evaluations.push(format.render_pieces(&texts(&ratings)));
                    branches.push(branch_evaluation(aspect, &member, &ratings, request.swapped)?);
                }
                None => conclusion = ratings,
            }
        }
        Ok(Ok(OrderVerdict {
            swapped: request.swapped,
            first_shown: None,
            branches,
            conclusion: rating_pair(&conclusion, [0, 1], request.swapped)?.into(),
        }))
    }

    /// Requests an evaluation, and again with evidence while the model asks questions.
    fn ask(
        &self,
        request: &EvaluationRequest,
        requested: RequestedEvaluation,
        journal: &mut RequestJournal,
    ) -> Result<Result<Vec<Rating>, String>> {
        let RequestedEvaluation { pieces, format, earlier } = requested;
        let mut pieces = without_image(pieces);
        let objection = match (request.objection, earlier) {
            (Some(objection), Some(earlier)) => {
                objection_text(objection.reason, &prompt_text(&format.render_pieces(&earlier)))
            }
            _ => String::new(),
        };
        let attempt = request.discussed.attempt();
        let mut rounds = self.knowledge.as_ref().map(KnowledgeRounds::new).transpose()?;
        loop {
            let text = format!(
                "{}\n\n{}{objection}Write the evaluation in exactly this form, and nothing else:\n\n{}",
                prompt_text(&pieces).trim(),
                request.hint,
                format.to_instructions()
            );
            let answer = journal.ask(&self.chat, &user_message(&text, request.image), attempt)?;
            let answer = match answer {
                Ok(answer) => answer,
                Err(reason) => return Ok(Err(reason)),
            };
            if let Some(rounds) = &mut rounds {
                let texts: Vec<&str> = answer.split(SCORE_LABEL).collect();
                if let Some(evidence) = rounds.find_evidence(&texts)? {
                    pieces.push(PromptPiece::Trusted("\n".to_owned()));
                    pieces.extend(evidence);
                    continue;
                }
            }
            return Ok(match format.parse(&answer) {
                Ok(parsed) => {
                    let mut ratings: Vec<Rating> = parsed.into_iter().map(to_rating).collect();
                    if let Some(rounds) = rounds {
                        rounds.add_to(&mut ratings);
                    }
                    Ok(ratings)
                }
                Err(error) => Err(error.to_string()),
            });
        }
    }
}

/// Returns the part of the prompt that states the labels.
fn label_hint([first, second]: [f64; 2], [low, high]: [u8; 2]) -> String {
    format!(
        "People who know the case gave Response 1 a final score of {first} and Response 2 one of {second}, of {low} to {high}. \
         Look again with this in mind, and give the reasons that the image and the texts bear.\n\n"
    )
}

/// Returns the part of the prompt with the objection of the reviewer to an earlier evaluation.
fn objection_text(reason: &str, earlier: &str) -> String {
    format!(
        "You wrote this evaluation before:\n\n{}\n\nA reviewer read it together with the evaluations of the other \
         aspects, and objects: {reason}\nWrite it anew. Correct what the reviewer is right about, and keep the rest.\n\n",
        earlier.trim()
    )
}

/// Returns the pieces without the image, which is a separate part of the message.
fn without_image(pieces: Vec<PromptPiece>) -> Vec<PromptPiece> {
    pieces.into_iter().filter(|piece| *piece != PromptPiece::Image).collect()
}

fn to_rating((analysis, score): (String, u8)) -> Rating {
    Rating::new(analysis, Score::from_value(score))
}

fn texts(ratings: &[Rating]) -> Vec<(String, u8)> {
    ratings.iter().map(|rating| (rating.analysis.clone(), rating.score.value)).collect()
}

/// Converts the ratings of a branch to an evaluation in the order of the pair. `ratings` contains
/// all ratings of the response that is presented first, then those of the other.
fn branch_evaluation(
    aspect: Aspect,
    member: &EvaluatedMember,
    ratings: &[Rating],
    swapped: bool,
) -> Result<BranchEvaluation> {
    let criteria = &member.criteria;
    let ratings = criteria.iter().enumerate().map(|(i, criterion)| {
        let indices = [i, i + criteria.len()];
        Ok((*criterion, rating_pair(ratings, indices, swapped)?.into()))
    });
    Ok(BranchEvaluation { aspect, ratings: ratings.collect::<Result<_>>()? })
}

/// Returns the ratings at two indices, in the order of the pair.
fn rating_pair(ratings: &[Rating], indices: [usize; 2], swapped: bool) -> Result<[Rating; 2]> {
    let [Some(first), Some(second)] = indices.map(|index| ratings.get(index)) else {
        bail!("the evaluation has {} ratings, fewer than its format requires", ratings.len());
    };
    let mut pair = [first.clone(), second.clone()];
    if swapped {
        pair.reverse();
    }
    Ok(pair)
}
