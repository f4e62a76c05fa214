//! A member of a panel that a server runs.

use std::sync::Arc;

use acem3_experts::Rating;
use acem3_experts::prompt::{EvaluationFormat, PromptPiece, ScoreWords};
use anyhow::{Result, bail};
use futures_util::future::try_join_all;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::endpoint::ServedModel;
use super::endpoint::engine::ServingEngine;
use super::exchange::message::{ContentPart, content_parts};
use super::exchange::model_names::OtherModelNames;
use super::exchange::read_rating::ReadRating;
use super::exchange::read_reply::{quote, read_reply};
use super::exchange::reply::Reply;
use super::exchange::request::{
    CHAT_PATH, RequestSettings, evaluation_options, render_body, sampling_options,
};
use super::exchange::score_probabilities::{LogprobKind, TokenPlaces, label_mass};
use super::exchange::text_limit::TextLimit;
use super::exchange::token_constraint::TokenConstraint;
use super::handshake::Capabilities;
use super::member_errors::{to_member_error, unscored};
use super::transport::Transport;
use super::transport::usage::UsageCounter;
use crate::data::cases::UnscoredReason;
use crate::judging::judge::server_report::ServerReport;
use crate::judging::judge::{MemberError, Unscored};

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
    /// Names of other models in its answers; members with the same model share them.
    pub(super) other_models: Arc<OtherModelNames>,
    /// True to request the label mass of every score if the server excludes other tokens before it
    /// returns probabilities.
    pub(super) requests_label_mass: bool,
    /// True if the member sees no images.
    pub(super) text_only: bool,
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
        let Capabilities { engine, settings, .. } = &self.capabilities;
        let mut options = evaluation_options(&self.model, *engine, format, limit, settings);
        if let Some(tokens) = &self.token_constraint {
            let constraint = tokens.render(format).map_err(to_unusable)?;
            options.insert(TOKEN_OPTION.to_owned(), constraint);
        }
        let content = content_parts(pieces, image);
        let reply = self.post(&content, None, options).await?;
        let mut ratings = self.read_ratings(&reply, format, limit)?;
        let is_masked = self.capabilities.logprobs == LogprobKind::Masked;
        if self.requests_label_mass && is_masked && self.capabilities.continues_prefixes() {
            let masses =
                ratings.iter().map(|(_, place)| self.request_label_mass(&content, place.as_ref()));
            let masses = try_join_all(masses).await?;
            for ((rating, _), mass) in ratings.iter_mut().zip(masses) {
                rating.score.label_mass = mass;
            }
        }
        Ok(ratings.into_iter().map(|(rating, _)| rating).collect())
    }

    /// Sends a request and counts its tokens.
    async fn post(
        &self,
        content: &[ContentPart<'_>],
        prefix: Option<&str>,
        mut options: Map<String, Value>,
    ) -> Result<Reply, MemberError> {
        options.retain(|name, _| !self.capabilities.unsupported.contains(name));
        let body = render_body(&self.model, content, prefix, options);
        let body = body.map_err(|error| MemberError::Unusable(error.to_string()))?;
        let reply = self.transport.post(CHAT_PATH, body, Reply::parse).await;
        let reply = reply.map_err(|error| to_member_error(error, "evaluation", &self.model))?;
        self.usage.add(&reply);
        self.other_models.add(self.capabilities.report.expected_name(), &reply);
        Ok(reply)
    }

    /// Returns what the handshake found, and the names of other models in later answers.
    pub(super) fn report(&self) -> ServerReport {
        let other_models = self.other_models.names();
        ServerReport { other_models, ..self.capabilities.report.clone() }
    }

    /// Requests the token at the place of a score without a constraint, and returns the probability of
    /// all scores together.
    async fn request_label_mass(
        &self,
        content: &[ContentPart<'_>],
        place: Option<&ScorePlace>,
    ) -> Result<Option<f32>, MemberError> {
        let Some(ScorePlace { prefix, before, words }) = place else {
            return Ok(None);
        };
        let settings =
            RequestSettings { max_tokens: Some(1), ..self.capabilities.settings.clone() };
        let options = sampling_options(&self.model, self.capabilities.engine, &settings);
        let reply = self.post(content, Some(prefix), options).await?;
        Ok(reply.tokens.first().map(|token| label_mass(token, before, *words)))
    }

    /// Reads the ratings of a reply.
    fn read_ratings(
        &self,
        reply: &Reply,
        format: &EvaluationFormat,
        limit: TextLimit,
    ) -> Result<Vec<(Rating, Option<ScorePlace>)>, MemberError> {
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
                    UnscoredReason::Format,
                    format!("the evaluation does not match its format: {expected}, got `{text}`"),
                )
            })?;
        let cut = match &self.token_constraint {
            Some(tokens) => tokens.cut_analyses(format, &reply.tokens).map_err(to_unusable)?,
            None => ratings.iter().map(|rating| rating.is_cut).collect(),
        };
        let text = reply.visible_token_bytes();
        let to_rating = |(rating, cut): (ReadRating, bool)| {
            let place = ScorePlace::new(&text, &places, &rating);
            let score = places.score(&rating, self.capabilities.logprobs);
            (Rating { cut, ..Rating::new(rating.analysis, score) }, place)
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

/// Where a score stands in a text.
struct ScorePlace {
    /// The text before the token with the score.
    prefix: String,
    /// The text of this token before the score, such as a space.
    before: Vec<u8>,
    words: ScoreWords,
}

impl ScorePlace {
    /// Finds the place of a rating; `None` if the server returned no tokens, or the text before it has
    /// bytes that are no characters.
    fn new(text: &[u8], places: &TokenPlaces<'_>, rating: &ReadRating) -> Option<Self> {
        let start = places.token_start(rating)?;
        let before = text.get(start..rating.place.start)?.to_vec();
        let prefix = String::from_utf8(text.get(..start)?.to_vec()).ok()?;
        Some(Self { prefix, before, words: rating.words })
    }
}
