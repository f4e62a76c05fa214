//! What a server that writes free text says about itself.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::judging::judge::server_report::{default_true, describe_model_name};

/// A server, as tested before the first question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextServer {
    /// The base URL.
    pub url: String,
    /// The model.
    pub model: String,
    /// True if the server lists the model.
    pub is_model_verified: bool,
    /// The name of the model in the answers, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answering_model: Option<String>,
    /// The engine.
    pub engine: String,
    /// The version of the engine, if it states one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The context of the model in tokens, if the server states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// Tokens of a test image; `None` if the model does not see images, or was not tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_tokens: Option<u64>,
    /// False if the server does not state how many tokens it reads and writes, so that costs are unknown.
    #[serde(default = "default_true", skip_serializing_if = "Clone::clone")]
    pub states_tokens: bool,
    /// Options that the server rejects, and that requests leave out.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unsupported: BTreeSet<String>,
}

impl TextServer {
    /// Returns the name of the model in the answers of the handshake.
    pub(super) fn expected_name(&self) -> &str {
        self.answering_model.as_ref().unwrap_or(&self.model)
    }

    /// Describes the server on one line.
    pub fn describe(&self) -> String {
        let Self { model, url, engine, .. } = self;
        let version = self.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
        let images =
            self.image_tokens.map_or(String::new(), |n| format!("; a test image has {n} tokens"));
        let name = describe_model_name(self.is_model_verified, self.answering_model.as_deref());
        let rejected: Vec<&str> = self.unsupported.iter().map(String::as_str).collect();
        let rejected = if rejected.is_empty() {
            String::new()
        } else {
            format!("; it rejects {}, so that its defaults hold", rejected.join(", "))
        };
        format!("{model} at {url}: {engine}{version}{images}{name}{rejected}")
    }
}
