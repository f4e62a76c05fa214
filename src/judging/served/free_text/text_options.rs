//! The options of a request for free text.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::judging::judge::text_writer::TextSampling;
use crate::judging::served::endpoint::ServedModel;
use crate::judging::served::endpoint::engine::ServingEngine;
use crate::judging::served::exchange::request::{RequestSettings, sampling_options};

/// The name of the token budget at hosts that reject `max_tokens`.
pub(in crate::judging::served) const MAX_COMPLETION_TOKENS: &str = "max_completion_tokens";
/// Options that some hosts reject.
const OPTIONAL: [&str; 7] =
    ["top_k", "min_p", "seed", "top_p", "presence_penalty", "frequency_penalty", "temperature"];

/// The options of all requests to a server.
#[derive(Clone, Debug)]
pub(in crate::judging::served) struct TextOptions {
    /// The engine.
    pub(in crate::judging::served) engine: ServingEngine,
    /// How the model writes.
    pub(in crate::judging::served) sampling: TextSampling,
    /// Options that the server rejects, and that requests leave out.
    pub(in crate::judging::served) unsupported: BTreeSet<String>,
    /// True if the server calls the token budget [`MAX_COMPLETION_TOKENS`].
    pub(in crate::judging::served) renames_max_tokens: bool,
}

impl TextOptions {
    /// Creates the options for a server that takes all of them.
    pub(in crate::judging::served) fn new(engine: ServingEngine, sampling: TextSampling) -> Self {
        Self { engine, sampling, unsupported: BTreeSet::new(), renames_max_tokens: false }
    }

    /// Returns the options as fields of a request. All options that change a text are set, because
    /// servers have other defaults.
    pub(in crate::judging::served) fn render(&self, model: &ServedModel) -> Map<String, Value> {
        let TextSampling { max_tokens, temperature, top_k, seed } = self.sampling;
        let settings = RequestSettings {
            max_tokens: Some(u64::from(max_tokens)),
            ..RequestSettings::default()
        };
        let mut options = sampling_options(model, self.engine, &settings);
        options.remove("logprobs");
        options.remove("top_logprobs");
        let mut set = |name: &str, value: Value| options.insert(name.to_owned(), value);
        set("temperature", json!(temperature));
        let has_top_k = self.engine != ServingEngine::OpenAi;
        match (top_k, self.engine) {
            (Some(k), _) => {
                set("top_k", json!(k));
            }
            // llama.cpp draws from all tokens with 0, vLLM and SGLang with -1.
            (None, ServingEngine::LlamaCpp) => {
                set("top_k", json!(0));
            }
            (None, ServingEngine::Vllm | ServingEngine::Sglang) => {
                set("top_k", json!(-1));
            }
            (None, ServingEngine::OpenAi) => {}
        }
        if has_top_k {
            set("min_p", json!(0.0));
        }
        if let Some(seed) = seed {
            set("seed", json!(seed));
        }
        options.retain(|name, _| !self.unsupported.contains(name));
        if self.renames_max_tokens
            && let Some(budget) = options.remove("max_tokens")
        {
            options.insert(MAX_COMPLETION_TOKENS.to_owned(), budget);
        }
        options
    }

    /// Returns the option that the message of a server names.
    pub(in crate::judging::served) fn rejected(&self, message: &str) -> Option<&'static str> {
        let is_named = |name: &&str| message.contains(*name) && !self.unsupported.contains(*name);
        OPTIONAL.into_iter().find(is_named)
    }

    /// Returns the flag with which the user passed an option; `None` if the user did not.
    pub(in crate::judging::served) fn flag_of(&self, option: &str) -> Option<&'static str> {
        match option {
            "temperature" if !self.sampling.is_greedy() => Some("--temperature"),
            "top_k" if self.sampling.top_k.is_some() => Some("--top-k"),
            "seed" if self.sampling.seed.is_some() => Some("--seed"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judging::served::endpoint::EndpointSettings;

    fn options(engine: ServingEngine, sampling: TextSampling) -> Value {
        let model = ServedModel::new(EndpointSettings {
            url: "http://127.0.0.1:1/v1",
            model: "m",
            engine: None,
            key_variable: None,
            allowed_hosts: &[],
            allow_http: false,
            adapters: &[],
        });
        Value::Object(TextOptions::new(engine, sampling).render(&model.unwrap()))
    }

    #[test]
    fn options_of_the_user_are_sent_and_defaults_of_servers_are_replaced() {
        let greedy = TextSampling { max_tokens: 200, temperature: 0.0, top_k: None, seed: None };
        let vllm = options(ServingEngine::Vllm, greedy);
        assert_eq!((&vllm["temperature"], &vllm["max_tokens"]), (&json!(0.0), &json!(200)));
        assert_eq!((&vllm["top_k"], &vllm["min_p"]), (&json!(-1), &json!(0.0)));
        assert_eq!(options(ServingEngine::LlamaCpp, greedy)["top_k"], 0);
        let host = options(ServingEngine::OpenAi, greedy);
        assert_eq!(host, json!({"temperature": 0.0, "max_tokens": 200}));
        let drawn = TextSampling { temperature: 0.5, top_k: Some(50), seed: Some(7), ..greedy };
        let host = options(ServingEngine::OpenAi, drawn);
        assert_eq!((&host["top_k"], &host["seed"]), (&json!(50), &json!(7)));
    }
}
