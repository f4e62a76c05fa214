//! Capabilities of a server, as the handshake found them before the first case.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// What to do about a model that gets no images.
pub const NO_IMAGES_HINT: &str =
    "serve a multimodal model, or pass --text-only to judge the texts alone";

/// The result of the handshake with a server about one model. It is part of `run.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerReport {
    /// The base URL.
    pub url: String,
    /// The model.
    pub model: String,
    /// True if the server lists the model. Some servers answer for any name, and repeat it.
    #[serde(default = "default_true")]
    pub is_model_verified: bool,
    /// The name of the model in the answers, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answering_model: Option<String>,
    /// Other names of models in later answers of the run.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub other_models: BTreeSet<String>,
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
    /// True if the server continues the start of an answer, which the label mass needs; `None` if it
    /// does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues_prefix: Option<bool>,
    /// True if the same request gave the same text and probabilities twice.
    pub repeatable: bool,
    /// False if the server does not state how many tokens it reads and writes, so that costs are unknown.
    #[serde(default = "default_true", skip_serializing_if = "Clone::clone")]
    pub states_tokens: bool,
    /// Options that the server rejects, and that requests leave out.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unsupported: BTreeSet<String>,
}

impl ServerReport {
    /// Says why the model gets no images. Only the number of tokens shows whether it sees them.
    pub fn why_no_images(&self) -> &'static str {
        if self.states_tokens {
            "it does not see images"
        } else {
            "whether it sees images is unknown, because its answers have no `usage`"
        }
    }

    /// Returns the name of the model in the answers of the handshake.
    pub(in crate::judging) fn expected_name(&self) -> &str {
        self.answering_model.as_ref().unwrap_or(&self.model)
    }

    /// Returns a note if later answers name a different model than the handshake.
    pub fn describe_other_models(&self) -> Option<String> {
        describe_other_models(&self.other_models, self.expected_name(), &self.url)
    }

    /// Adds the names that an earlier command of the run got from this server.
    pub fn add_earlier(&mut self, earlier: &[Self]) {
        let is_same = |other: &&Self| other.url == self.url && other.model == self.model;
        let names: Vec<String> =
            earlier.iter().filter(is_same).flat_map(|other| other.other_models.clone()).collect();
        self.other_models.extend(names);
    }

    /// Describes the server in one line.
    pub fn describe(&self) -> String {
        let version = self.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
        let images = match self.image_tokens {
            Some(tokens) => format!("a test image has {tokens} tokens"),
            None => self.why_no_images().to_owned(),
        };
        let logprobs = match self.logprobs.as_str() {
            "raw" => "probabilities before the constraint",
            "masked" => "probabilities after the constraint",
            _ => "no probabilities: expected scores equal the scores",
        };
        let repeatable = if self.repeatable { "repeatable" } else { "NOT repeatable" };
        let name = describe_model_name(self.is_model_verified, self.answering_model.as_deref());
        let Self { model, url, engine, .. } = self;
        format!("{model} at {url}: {engine}{version}; {images}; {logprobs}; {repeatable}{name}")
    }
}

/// Reports of earlier versions do not say it: they required a list or accepted the name, and counted no
/// tokens that a server did not state.
pub(in crate::judging) fn default_true() -> bool {
    true
}

/// Returns a note that answers gave `names` for their model instead of `expected`; `None` without names.
pub(in crate::judging) fn describe_other_models(
    names: &BTreeSet<String>,
    expected: &str,
    url: &str,
) -> Option<String> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{url}: some answers name the model {}, not {expected}; the server may have changed its model \
             during the run",
            names.join(", ")
        )
    })
}

/// Describes whether a server confirms the name of its model, as the end of a line; empty if it does.
/// `answering_model`: the name in the answers, if it is another one.
pub(in crate::judging) fn describe_model_name(
    is_verified: bool,
    answering_model: Option<&str>,
) -> String {
    match answering_model {
        Some(other) => format!("; its answers name the model {other}"),
        None if is_verified => String::new(),
        None => "; model NOT verified: the server lists no models, and may answer for any name"
            .to_owned(),
    }
}
