//! Tests whether a server continues the start of an answer.
//!
//! A server that does not know the option ends the start as a finished answer and writes a new one. Only
//! the length of the prompt shows it.

use serde_json::{Value, json};

use super::prompt_counter::PromptCounter;
use crate::judging::served::endpoint::ServedModel;
use crate::judging::served::endpoint::engine::ServingEngine;
use crate::judging::served::exchange::message::ContentPart;
use crate::judging::served::transport::Transport;

/// The start of the test answer.
const PREFIX: &str = "Score:";

/// Returns whether a server continues the start of an answer; `None` if it does not show it.
pub(super) async fn continues_prefix(
    model: &ServedModel,
    transport: &Transport,
    engine: ServingEngine,
) -> Option<bool> {
    let prefix_tokens = count_tokens(model, transport).await?;
    let counter = PromptCounter { model, transport, engine, renames_max_tokens: false };
    let content = [ContentPart::Text { text: "Give a score.".to_owned() }];
    let without = counter.count(&content, None).await.ok()??;
    let with = counter.count(&content, Some(PREFIX)).await.ok()??;
    Some(with == without + prefix_tokens)
}

async fn count_tokens(model: &ServedModel, transport: &Transport) -> Option<u64> {
    // vLLM reads `prompt`, llama.cpp `content`.
    let body = json!({
        "model": model.model, "prompt": PREFIX, "content": PREFIX, "add_special_tokens": false,
    });
    let parse = |bytes: &[u8]| {
        let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        value["tokens"].as_array().map(|tokens| tokens.len() as u64).ok_or("no tokens".to_owned())
    };
    transport.post("/tokenize", body.to_string(), parse).await.ok()
}
