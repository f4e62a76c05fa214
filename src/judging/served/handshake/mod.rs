//! Tests a server before the first case: does it obey the constraint, return probabilities and see
//! images?
//!
//! Servers ignore fields that they do not know, answer for unknown models, and drop images, all with
//! status 200. So each ability is tested, not assumed.

mod detection;
mod error;
mod image_test;
mod prefix_test;
mod prompt_counter;
mod text_test;

use std::collections::BTreeSet;

use acem3_experts::prompt::{EvaluationFormat, PromptPiece, ScoreWords};
use serde_json::{Map, Value, json};

use self::detection::{DetectedServer, detect};
pub(super) use self::error::to_run_error;
use self::error::{HandshakeError, request_error};
use self::image_test::count_image_tokens;
use self::prefix_test::continues_prefix;
use self::prompt_counter::PromptCounter;
pub(super) use self::text_test::test_text_model;
use super::endpoint::ServedModel;
use super::endpoint::engine::ServingEngine;
use super::exchange::message::content_parts;
use super::exchange::read_reply::{quote, read_reply};
use super::exchange::reply::Reply;
use super::exchange::request::{CHAT_PATH, RequestSettings, evaluation_options, render_body};
use super::exchange::score_probabilities::{LogprobKind, TokenPlaces};
use super::exchange::text_limit::TextLimit;
use super::transport::{RequestError, Transport};
use crate::judging::judge::server_report::ServerReport;

/// Sum of the probabilities of the scores from which other tokens were excluded before.
const COMPLETE_MASS: f32 = 0.999;
/// A prompt whose natural answer is no score.
const TEST_PROMPT: &str = "Write the word: yes";
/// Options that some hosts reject.
const OPTIONAL: [&str; 8] = [
    "top_logprobs",
    "logprobs",
    "logprob_token_ids",
    "seed",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "temperature",
];

/// What requests to a model need to know about its server.
#[derive(Clone, Debug)]
pub(super) struct Capabilities {
    pub(super) engine: ServingEngine,
    pub(super) logprobs: LogprobKind,
    pub(super) settings: RequestSettings,
    /// Options that requests leave out.
    pub(super) unsupported: BTreeSet<String>,
    /// The result of the handshake.
    pub(super) report: ServerReport,
}

impl Capabilities {
    /// Returns true if the server continues the start of an answer.
    pub(super) fn continues_prefixes(&self) -> bool {
        self.report.continues_prefix == Some(true)
    }

    /// Returns true if the label mass of a score can be known.
    pub(super) fn has_label_mass(&self) -> bool {
        match self.logprobs {
            LogprobKind::Raw => true,
            LogprobKind::Masked => self.continues_prefixes(),
            LogprobKind::None => false,
        }
    }

    /// Returns true if the model sees images.
    pub(super) fn sees_images(&self) -> bool {
        self.report.image_tokens.is_some()
    }
}

/// Tests a model.
///
/// # Errors
///
/// The server cannot be reached, has no such model, rejects the key, or ignores the constraint.
pub(super) async fn shake_hands(
    model: &ServedModel,
    transport: &Transport,
) -> Result<Capabilities, HandshakeError> {
    let DetectedServer { engine, version, context, lists_model } = detect(model, transport).await?;
    let token_ids = match engine {
        ServingEngine::Vllm => score_token_ids(model, transport).await,
        _ => Vec::new(),
    };
    let mut canary = Canary {
        model,
        transport,
        engine,
        settings: RequestSettings { token_ids, max_tokens: None },
        unsupported: BTreeSet::new(),
    };
    let first = canary.send_supported().await?;
    let mass = canary.check_constraint(&first)?;
    let second = canary.send().await?;
    let logprobs = match mass {
        None => LogprobKind::None,
        Some(_) if engine == ServingEngine::LlamaCpp => LogprobKind::Raw,
        Some(mass) if mass < COMPLETE_MASS => LogprobKind::Raw,
        Some(_) => LogprobKind::Masked,
    };
    let counter = PromptCounter { model, transport, engine, renames_max_tokens: false };
    let image_tokens = count_image_tokens(counter).await?;
    let continues_prefix = match engine {
        ServingEngine::OpenAi => None,
        _ => continues_prefix(model, transport, engine).await,
    };
    let Canary { settings, unsupported, .. } = canary;
    let report = ServerReport {
        url: model.url.as_str().to_owned(),
        model: model.model.clone(),
        engine: engine.name().to_owned(),
        is_model_verified: lists_model,
        answering_model: first.model.clone().filter(|name| *name != model.model),
        other_models: BTreeSet::new(),
        version,
        fingerprint: first.fingerprint.clone(),
        context,
        logprobs: logprobs.name().to_owned(),
        image_tokens,
        continues_prefix,
        repeatable: first.text == second.text && first.tokens == second.tokens,
        states_tokens: first.states_tokens(),
        unsupported: unsupported.clone(),
    };
    Ok(Capabilities { engine, logprobs, settings, unsupported, report })
}

/// A request whose answer shows whether the server obeys a constraint.
struct Canary<'a> {
    model: &'a ServedModel,
    transport: &'a Transport,
    engine: ServingEngine,
    settings: RequestSettings,
    unsupported: BTreeSet<String>,
}

impl Canary<'_> {
    const LIMIT: TextLimit = TextLimit { characters: 0 };

    fn format() -> EvaluationFormat {
        EvaluationFormat::for_final_scores(1, ScoreWords::DEFAULT)
    }

    async fn request(&self) -> Result<Reply, RequestError> {
        let options = evaluation_options(
            self.model,
            self.engine,
            &Self::format(),
            Self::LIMIT,
            &self.settings,
        );
        post_chat(self.transport, self.model, TEST_PROMPT, self.without_unsupported(options)).await
    }

    fn without_unsupported(&self, mut options: Map<String, Value>) -> Map<String, Value> {
        options.retain(|name, _| !self.unsupported.contains(name));
        options
    }

    async fn send(&self) -> Result<Reply, HandshakeError> {
        self.request().await.map_err(request_error(self.model))
    }

    /// Sends the request without each option that the server rejects.
    async fn send_supported(&mut self) -> Result<Reply, HandshakeError> {
        loop {
            let error = match self.request().await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let RequestError::Rejected(message) = &error else {
                return Err(request_error(self.model)(error));
            };
            let is_named =
                |name: &&&str| message.contains(**name) && !self.unsupported.contains(**name);
            let Some(name) = OPTIONAL.iter().find(is_named) else {
                return Err(request_error(self.model)(error));
            };
            if *name == "logprob_token_ids" {
                // Older versions of vLLM return the most probable tokens only.
                self.settings.token_ids.clear();
            }
            self.unsupported.insert((*name).to_owned());
        }
    }

    /// Checks that an answer has the format, and returns the probability of all scores together;
    /// `None` without probabilities.
    fn check_constraint(&self, reply: &Reply) -> Result<Option<f32>, HandshakeError> {
        let (model, text) = (self.model.to_string(), quote(&reply.text));
        if let Some(refusal) = &reply.refusal {
            return Err(HandshakeError::Refused { model, text: quote(refusal) });
        }
        let format = Self::format();
        let read = read_reply(self.engine, reply, &format, Self::LIMIT);
        if read.is_err() && reply.finish_reason == "length" {
            return Err(HandshakeError::Truncated { model, text });
        }
        let (ratings, places): (_, TokenPlaces) = read.map_err(|expected| {
            HandshakeError::Unconstrained { model, engine: self.engine.name(), expected, text }
        })?;
        let score = ratings.first().map(|rating| places.score(rating, LogprobKind::Raw));
        Ok(score.and_then(|score| score.label_mass))
    }
}

/// Sends a prompt with options.
async fn post_chat(
    transport: &Transport,
    model: &ServedModel,
    prompt: &str,
    options: Map<String, Value>,
) -> Result<Reply, RequestError> {
    let pieces = [PromptPiece::Trusted(prompt.to_owned())];
    let body = render_body(model, &content_parts(&pieces, None), None, options);
    let body = body.map_err(|error| RequestError::Rejected(error.to_string()))?;
    transport.post(CHAT_PATH, body, Reply::parse).await
}

/// Returns the ids of the tokens of all scores after their labels; none if the server does not tell
/// them, or a score is not one token.
async fn score_token_ids(model: &ServedModel, transport: &Transport) -> Vec<u32> {
    let mut ids = BTreeSet::new();
    let labels = [("Score:", ScoreWords::DEFAULT), ("Correct:", ScoreWords::NoYes)];
    for (label, words) in labels {
        for word in words.words().into_iter().flatten() {
            let text = format!("{label} {word}");
            let body = json!({"model": model.model, "prompt": text, "add_special_tokens": false});
            let parse = |bytes: &[u8]| {
                let value: Value = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
                let last = value["tokens"].as_array().and_then(|tokens| tokens.last()?.as_u64());
                last.and_then(|id| u32::try_from(id).ok()).ok_or_else(|| "no tokens".to_owned())
            };
            match transport.post("/tokenize", body.to_string(), parse).await {
                Ok(id) => ids.insert(id),
                Err(_) => return Vec::new(),
            };
        }
    }
    ids.into_iter().collect()
}
