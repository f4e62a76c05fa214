//! A member of a panel that a server runs.

use std::sync::Arc;

use acem3_experts::Rating;
use acem3_experts::prompt::{EvaluationFormat, PromptPiece, ScoreWords};
use anyhow::{Result, bail};
use serde_json::value::RawValue;

use super::endpoint::ServedModel;
use super::endpoint::engine::ServingEngine;
use super::exchange::constraint::TextLimit;
use super::exchange::message::content_parts;
use super::exchange::read_rating::ReadRating;
use super::exchange::read_reply::{quote, read_reply};
use super::exchange::reply::Reply;
use super::exchange::request::{CHAT_PATH, evaluation_options, render_body};
use super::exchange::token_constraint::TokenConstraint;
use super::handshake::Capabilities;
use super::transport::usage::UsageCounter;
use super::transport::{RequestError, Transport};
use crate::data::cases::UnscoredReason;
use crate::judging::judge::Unscored;

/// A member of a panel that a server runs.
#[derive(Clone, Debug)]
pub(super) struct ServedMember {
    /// The model.
    pub(super) model: ServedModel,
    /// The connection to the server; members of one server share it.
    pub(super) transport: Arc<Transport>,
    /// What the server can do.
    pub(super) capabilities: Capabilities,
    /// The constraint on tokens; `None` to constrain the text.
    pub(super) token_constraint: Option<Arc<TokenConstraint>>,
    /// The counts of all members.
    pub(super) usage: Arc<UsageCounter>,
}

/// Why a member has no ratings.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MemberError {
    /// This evaluation has none.
    Unscored(Unscored),
    /// No evaluation can have any.
    Unusable(String),
}

impl ServedMember {
    /// Requests an evaluation in a format.
    pub(super) async fn evaluate(
        &self,
        pieces: &[PromptPiece],
        format: &EvaluationFormat,
        image: Option<&RawValue>,
        limit: TextLimit,
    ) -> Result<Vec<Rating>, MemberError> {
        let Capabilities { engine, settings, unsupported, .. } = &self.capabilities;
        let mut options = evaluation_options(&self.model, *engine, format, limit, settings);
        options.retain(|name, _| !unsupported.contains(name));
        if let Some(tokens) = &self.token_constraint {
            let constraint = tokens.render(format).map_err(to_unusable)?;
            options.insert(TOKEN_OPTION.to_owned(), constraint);
        }
        let body = render_body(&self.model, &content_parts(pieces, image), options);
        let body = body.map_err(|error| MemberError::Unusable(error.to_string()))?;
        let reply = self.transport.post(CHAT_PATH, body, Reply::parse).await;
        let reply = reply.map_err(to_member_error)?;
        let [prompt, written] = [reply.prompt_tokens, reply.written_tokens].map(Option::unwrap_or_default);
        self.usage.add(prompt, written);
        self.read_ratings(&reply, format, limit)
    }

    /// Reads the ratings of a reply.
    fn read_ratings(
        &self,
        reply: &Reply,
        format: &EvaluationFormat,
        limit: TextLimit,
    ) -> Result<Vec<Rating>, MemberError> {
        if let Some(refusal) = &reply.refusal {
            return Err(unscored(
                UnscoredReason::Refused,
                format!("the model refused: {}", quote(refusal)),
            ));
        }
        if reply.finish_reason == "length" {
            return Err(unscored(
                UnscoredReason::Truncated,
                "the evaluation is not complete: the server reached its limit of tokens\n\
                 hint: serve the model with a longer context, or use a panel file with fewer \
                 analysis_tokens"
                    .to_owned(),
            ));
        }
        let (ratings, places) = read_reply(self.capabilities.engine, reply, format, limit)
            .map_err(|expected| {
                let text = quote(&reply.text);
                unscored(
                    UnscoredReason::Parse,
                    format!("the evaluation does not match its format: {expected}, got `{text}`"),
                )
            })?;
        let cut = match &self.token_constraint {
            Some(tokens) => tokens.cut_analyses(format, &reply.tokens).map_err(to_unusable)?,
            None => ratings.iter().map(|rating| rating.is_cut).collect(),
        };
        let to_rating = |(rating, cut): (ReadRating, bool)| Rating {
            score: places.score(&rating, self.capabilities.logprobs),
            analysis: rating.analysis,
            cut,
        };
        Ok(ratings.into_iter().zip(cut).map(to_rating).collect())
    }

    /// Checks that the server obeys the constraint on tokens, if there is one.
    ///
    /// # Errors
    ///
    /// It does not.
    pub(super) async fn check_token_constraint(&self) -> Result<()> {
        if self.token_constraint.is_none() {
            return Ok(());
        }
        let hint = "hint: start vLLM 0.32 or later with VLLM_XGRAMMAR_CACHE_MB=0 in its environment, or \
                    remove `tokenizer` from the panel file; scores then differ from those of the panel \
                    on this machine";
        if self.capabilities.engine != ServingEngine::Vllm {
            bail!("{}: the constraint on tokens (`tokenizer`) needs vLLM\n{hint}", self.model);
        }
        let pieces = [PromptPiece::Trusted("Write the word: yes".to_owned())];
        let limit = TextLimit { characters: 0 };
        // Two formats: XGrammar 0.2.8 takes the tokens of the first for those of the second if it keeps
        // compiled constraints.
        let formats = [1, 2].map(|n| EvaluationFormat::for_final_scores(n, ScoreWords::DEFAULT));
        for format in formats {
            let result = self.evaluate(&pieces, &format, None, limit).await;
            let Err(
                MemberError::Unscored(Unscored { message, .. }) | MemberError::Unusable(message),
            ) = result
            else {
                continue;
            };
            let message = message.lines().next().unwrap_or_default();
            bail!(
                "{}: the server does not obey a constraint on tokens: {message}\n{hint}",
                self.model
            );
        }
        Ok(())
    }
}

/// The option with the constraint on tokens.
const TOKEN_OPTION: &str = "structured_outputs";

/// Returns the error of a tokenizer.
fn to_unusable(error: impl std::fmt::Display) -> MemberError {
    MemberError::Unusable(error.to_string())
}

fn unscored(reason: UnscoredReason, message: String) -> MemberError {
    MemberError::Unscored(Unscored { reason, message })
}

fn to_member_error(error: RequestError) -> MemberError {
    match error {
        RequestError::TooLong(message) => unscored(UnscoredReason::Truncated, message),
        RequestError::Rejected(message) => {
            unscored(UnscoredReason::Refused, format!("the server rejects the request: {message}"))
        }
        RequestError::Failed(message) => {
            unscored(UnscoredReason::Transport, format!("the server gave no evaluation: {message}"))
        }
        RequestError::Missing(message) | RequestError::Unusable(message) => {
            MemberError::Unusable(message)
        }
    }
}
