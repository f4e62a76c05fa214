//! Counts the tokens of prompts as a server counts them.

use crate::judging::served::endpoint::ServedModel;
use crate::judging::served::endpoint::engine::ServingEngine;
use crate::judging::served::exchange::message::ContentPart;
use crate::judging::served::exchange::reply::Reply;
use crate::judging::served::exchange::request::{
    CHAT_PATH, RequestSettings, render_body, sampling_options,
};
use crate::judging::served::free_text::text_options::MAX_COMPLETION_TOKENS;
use crate::judging::served::transport::{RequestError, Transport};

/// A model whose prompts are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct PromptCounter<'a> {
    pub(super) model: &'a ServedModel,
    pub(super) transport: &'a Transport,
    pub(super) engine: ServingEngine,
    /// True if the server calls the token budget [`MAX_COMPLETION_TOKENS`].
    pub(super) renames_max_tokens: bool,
}

impl PromptCounter<'_> {
    /// Returns the number of tokens of a prompt; `None` if the server does not count. `prefix`: the start of
    /// the answer.
    pub(super) async fn count(
        &self,
        content: &[ContentPart<'_>],
        prefix: Option<&str>,
    ) -> Result<Option<u64>, RequestError> {
        let settings = RequestSettings { token_ids: Vec::new(), max_tokens: Some(16) };
        let mut options = sampling_options(self.model, self.engine, &settings);
        options.retain(|name, _| matches!(name.as_str(), "max_tokens" | "lora"));
        if self.renames_max_tokens
            && let Some(budget) = options.remove("max_tokens")
        {
            options.insert(MAX_COMPLETION_TOKENS.to_owned(), budget);
        }
        let body = render_body(self.model, content, prefix, options);
        let body = body.map_err(|error| RequestError::Rejected(error.to_string()))?;
        Ok(self.transport.post(CHAT_PATH, body, Reply::parse).await?.prompt_tokens)
    }
}
