//! What a server of a member can do, as tested before the first case.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The result of the handshake with a server about one model. It is part of `run.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerReport {
    /// The base URL.
    pub url: String,
    /// The model.
    pub model: String,
    /// The engine.
    pub engine: String,
    /// The version of the engine, if it states one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What the server calls its configuration, if it states that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The context of the model in tokens, if the server states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// Whether probabilities are those before (`raw`) or after (`masked`) the constraint, or there are
    /// `none`.
    pub logprobs: String,
    /// The number of tokens of a test image; `None` if the model does not see images.
    pub image_tokens: Option<u64>,
    /// True if the same request gave the same text and probabilities twice.
    pub repeatable: bool,
    /// Options that the server rejects, and that requests leave out.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unsupported: BTreeSet<String>,
}

/// Requests that were answered, and their tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerUsage {
    /// Number of requests.
    pub requests: u64,
    /// Tokens of the prompts, image tokens included; 0 if the server does not count.
    pub prompt_tokens: u64,
    /// Tokens that the models wrote.
    pub written_tokens: u64,
}

/// Prices of a server, for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenPrices {
    /// Price of a million tokens of prompts.
    pub prompt: f64,
    /// Price of a million written tokens.
    pub written: f64,
}

impl ServerUsage {
    /// Returns the cost of these tokens.
    pub fn cost(&self, prices: TokenPrices) -> f64 {
        (self.prompt_tokens as f64 * prices.prompt + self.written_tokens as f64 * prices.written)
            / 1e6
    }
}

impl ServerReport {
    /// Describes the server in one line.
    pub fn describe(&self) -> String {
        let version = self.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
        let images = match self.image_tokens {
            Some(tokens) => format!("a test image has {tokens} tokens"),
            None => "it does not see images".to_owned(),
        };
        let logprobs = match self.logprobs.as_str() {
            "raw" => "probabilities with label mass",
            "masked" => "probabilities without label mass",
            _ => "no probabilities: expected scores equal the scores",
        };
        let repeatable = if self.repeatable { "repeatable" } else { "NOT repeatable" };
        let Self { model, url, engine, .. } = self;
        format!("{model} at {url}: {engine}{version}; {images}; {logprobs}; {repeatable}")
    }
}
