//! Completions as a serving engine returns them.

use serde::Serialize;
use serde_json::Value;

/// The reply to a request for a completion.
#[derive(Serialize)]
pub(super) struct Completion<'a> {
    pub(super) model: Value,
    pub(super) choices: [CompletionChoice<'a>; 1],
    pub(super) usage: Option<Value>,
}

#[derive(Serialize)]
pub(super) struct CompletionChoice<'a> {
    pub(super) index: u8,
    pub(super) finish_reason: &'static str,
    pub(super) message: Value,
    pub(super) logprobs: Option<Logprobs<'a>>,
}

#[derive(Serialize)]
pub(super) struct Logprobs<'a> {
    pub(super) content: Vec<Token<'a>>,
}

/// A token of a text, with its alternatives.
#[derive(Serialize)]
pub(super) struct Token<'a> {
    #[serde(flatten)]
    pub(super) chosen: Alternative<'a>,
    pub(super) top_logprobs: Vec<Alternative<'a>>,
}

#[derive(Serialize)]
pub(super) struct Alternative<'a> {
    token: &'a str,
    bytes: &'a [u8],
    logprob: f64,
}

impl<'a> Alternative<'a> {
    /// Creates an alternative from its text and its log-probability.
    pub(super) fn new(token: &'a str, logprob: f64) -> Self {
        Self { token, bytes: token.as_bytes(), logprob }
    }
}
