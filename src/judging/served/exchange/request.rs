//! The body of a request for an evaluation.

use acem3_experts::prompt::EvaluationFormat;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::constraint::{to_grammar, to_json_schema, to_regex};
use super::message::ContentPart;
use super::text_limit::TextLimit;
use crate::judging::served::endpoint::ServedModel;
use crate::judging::served::endpoint::engine::{ConstraintNotation, ServingEngine};

/// Path of chat completions below the base URL.
pub(in crate::judging::served) const CHAT_PATH: &str = "chat/completions";

/// What a request asks for, apart from its message.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::judging::served) struct RequestSettings {
    /// Ids of the tokens whose probabilities vLLM returns at each place; empty to request the most
    /// probable ones.
    pub(in crate::judging::served) token_ids: Vec<u32>,
    /// Maximum tokens of the text; `None` for the limit of the server.
    pub(in crate::judging::served) max_tokens: Option<u64>,
}

#[derive(Serialize)]
struct RequestBody<'a> {
    model: &'a str,
    messages: Vec<ChatMessage<'a>>,
    #[serde(flatten)]
    options: Map<String, Value>,
}

#[derive(Serialize)]
struct ChatMessage<'a> {
    role: &'static str,
    content: MessageContent<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum MessageContent<'a> {
    Parts(&'a [ContentPart<'a>]),
    Text(&'a str),
}

/// Renders the body of a request. The sampling settings are set to greedy decoding without
/// penalties, because servers have other defaults. `prefix`: the start of the answer, which the model
/// continues.
///
/// # Errors
///
/// A value cannot be written as JSON.
pub(in crate::judging::served) fn render_body(
    model: &ServedModel,
    content: &[ContentPart<'_>],
    prefix: Option<&str>,
    mut options: Map<String, Value>,
) -> serde_json::Result<String> {
    let mut messages = vec![ChatMessage { role: "user", content: MessageContent::Parts(content) }];
    if let Some(prefix) = prefix {
        messages.push(ChatMessage { role: "assistant", content: MessageContent::Text(prefix) });
        options.insert("continue_final_message".to_owned(), json!(true));
        options.insert("add_generation_prompt".to_owned(), json!(false));
    }
    serde_json::to_string(&RequestBody { model: &model.model, messages, options })
}

/// Returns the options of a request to an engine for a text in a format.
pub(in crate::judging::served) fn evaluation_options(
    model: &ServedModel,
    engine: ServingEngine,
    format: &EvaluationFormat,
    limit: TextLimit,
    settings: &RequestSettings,
) -> Map<String, Value> {
    let mut options = sampling_options(model, engine, settings);
    add_constraint(&mut options, engine, format, limit);
    options
}

/// Returns the options for greedy decoding with probabilities.
pub(in crate::judging::served) fn sampling_options(
    model: &ServedModel,
    engine: ServingEngine,
    settings: &RequestSettings,
) -> Map<String, Value> {
    let mut options = Map::new();
    let mut set = |name: &str, value: Value| {
        options.insert(name.to_owned(), value);
    };
    set("temperature", json!(0));
    set("logprobs", json!(true));
    if settings.token_ids.is_empty() {
        set("top_logprobs", json!(engine.alternatives()));
    } else {
        set("logprob_token_ids", json!(settings.token_ids));
    }
    if let Some(max_tokens) = settings.max_tokens {
        set("max_tokens", json!(max_tokens));
    }
    match engine {
        ServingEngine::Vllm | ServingEngine::Sglang => {
            set("repetition_penalty", json!(1.0));
            set("chat_template_kwargs", json!({"enable_thinking": false}));
        }
        ServingEngine::LlamaCpp => {
            set("repeat_penalty", json!(1.0));
            set("chat_template_kwargs", json!({"enable_thinking": false}));
            // Without this field, a request can get the cached state of other adapters.
            set("lora", json!(model.adapters));
        }
        ServingEngine::OpenAi => {}
    }
    if engine != ServingEngine::OpenAi {
        set("seed", json!(0));
        set("top_p", json!(1.0));
        set("presence_penalty", json!(0.0));
        set("frequency_penalty", json!(0.0));
    }
    options
}

/// Adds the constraint in the notation of an engine.
fn add_constraint(
    options: &mut Map<String, Value>,
    engine: ServingEngine,
    format: &EvaluationFormat,
    limit: TextLimit,
) {
    let (name, value) = match (engine.notation(), engine) {
        (ConstraintNotation::Regex, ServingEngine::Vllm) => {
            ("structured_outputs", json!({"regex": to_regex(format, limit)}))
        }
        (ConstraintNotation::Regex, _) => ("regex", json!(to_regex(format, limit))),
        (ConstraintNotation::Grammar, _) => ("grammar", json!(to_grammar(format, limit))),
        (ConstraintNotation::JsonSchema, _) => {
            let schema = to_json_schema(format, limit);
            let json_schema = json!({"name": "evaluation", "strict": true, "schema": schema});
            ("response_format", json!({"type": "json_schema", "json_schema": json_schema}))
        }
    };
    options.insert(name.to_owned(), value);
}
