//! A member of a panel that a server runs.

use std::sync::Arc;

use acem3_experts::Rating;
use acem3_experts::prompt::{EvaluationFormat, PromptPiece};
use serde_json::value::RawValue;

use super::endpoint::ServedModel;
use super::exchange::constraint::TextLimit;
use super::exchange::message::content_parts;
use super::exchange::read_rating::ReadRating;
use super::exchange::read_reply::{quote, read_reply};
use super::exchange::reply::Reply;
use super::exchange::request::{CHAT_PATH, evaluation_options, render_body};
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
        let body = render_body(&self.model, &content_parts(pieces, image), options);
        let body = body.map_err(|error| MemberError::Unusable(error.to_string()))?;
        let reply = self.transport.post(CHAT_PATH, body, Reply::parse).await;
        let reply = reply.map_err(to_member_error)?;
        let [prompt, written] =
            [reply.prompt_tokens, reply.written_tokens].map(Option::unwrap_or_default);
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
        let to_rating = |rating: ReadRating| Rating {
            score: places.score(&rating, self.capabilities.logprobs),
            analysis: rating.analysis,
            cut: rating.is_cut,
        };
        Ok(ratings.into_iter().map(to_rating).collect())
    }
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
