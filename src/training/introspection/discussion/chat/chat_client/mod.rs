//! HTTP client of a chat endpoint: authentication, retry policy, unsupported parameters.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::data::cases::case::MARKED_LOCAL_ONLY;
use crate::judging::judge::JudgeJob;
use crate::support::network::access_token::AccessToken;
use crate::support::network::http_client::{build_client, root_cause};
use crate::support::network::response_body::{read_body, read_error_body};
use crate::support::network::service_url::ServiceUrl;
use crate::support::network::url_secrets::hide_url_secrets;
use crate::support::terminal::exit::RunFailure;
use crate::support::text::escape_control_chars;
use crate::training::introspection::discussion::chat::chat_flags::ChatFlags;

/// Attempts and timeout of a request about a pair. Attempts follow connection failures and
/// transient errors.
const PAIR_REQUEST: RequestPolicy =
    RequestPolicy { max_attempts: 4, timeout: Duration::from_mins(5) };
/// Attempts and timeout of the first request, which checks the endpoint. Its answer is one word.
const CHECK_REQUEST: RequestPolicy =
    RequestPolicy { max_attempts: 2, timeout: Duration::from_mins(2) };
/// Maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: usize = 4 << 20;
/// Maximum bytes of an error response that are read.
const MAX_ERROR_BYTES: usize = 16 << 10;
/// Maximum characters of a response in a message.
const MAX_PRINTED_CHARS: usize = 200;
/// Maximum length of an answer in tokens.
const MAX_TOKENS: u32 = 1500;

/// A model behind `{base}/chat/completions`.
#[derive(Debug)]
pub struct ChatClient {
    client: Client,
    runtime: Runtime,
    url: String,
    model: String,
    key: Option<AccessToken>,
    /// Flags that the user passed, for messages.
    flags: ChatFlags,
    /// True if the endpoint runs on this machine.
    is_local: bool,
    /// Pause before the first retry; each later pause is four times as long.
    first_pause: Duration,
    /// Request parameters that the model has rejected.
    rejected_parameters: Mutex<BTreeSet<&'static str>>,
}

/// Attempts and timeout of a request.
#[derive(Clone, Copy, Debug)]
struct RequestPolicy {
    /// Maximum number of attempts.
    max_attempts: u32,
    /// Timeout of an attempt with its complete response.
    timeout: Duration,
}

/// Sampling parameters that some models reject. Newer models expect `max_completion_tokens` instead
/// of the first one and accept no value for the others.
const OPTIONAL_PARAMETERS: [&str; 3] = ["max_tokens", "temperature", "seed"];

impl ChatClient {
    /// Creates a client for a model behind a base URL.
    ///
    /// # Errors
    /// If the HTTP client cannot be created.
    pub fn new(
        base: &ServiceUrl,
        model: &str,
        key: Option<AccessToken>,
        flags: ChatFlags,
    ) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Self {
            client: build_client(base, |client| client)?,
            runtime: runtime.context("cannot set up the HTTP client")?,
            url: format!("{}/chat/completions", base.as_str()),
            model: model.to_owned(),
            key,
            flags,
            is_local: base.is_local(),
            first_pause: Duration::from_secs(1),
            rejected_parameters: Mutex::default(),
        })
    }

    /// Checks that a case may be sent: one that is marked `local_only` stays on this machine.
    ///
    /// # Errors
    /// The reason why it may not.
    pub(crate) fn may_receive(&self, job: &JudgeJob) -> Result<(), String> {
        if self.is_local || !job.case.is_local_only() {
            return Ok(());
        }
        Err(format!("{MARKED_LOCAL_ONLY}, and would be sent to {}", self.url))
    }

    /// Returns the model and its URL.
    pub(crate) fn name(&self) -> String {
        format!("{} at {}", self.model, self.url)
    }

    /// Sends a short message, to report a wrong key, URL or model before the training starts.
    ///
    /// # Errors
    /// If the endpoint is unreachable, or rejects the key, the model or the message.
    pub(crate) fn check(&self) -> Result<()> {
        let content = json!([{"type": "text", "text": "Answer with the word: yes"}]);
        let messages = json!([{"role": "user", "content": content}]);
        match self.ask_with(&messages, 0, CHECK_REQUEST)? {
            // Any answer shows that the endpoint accepts the key and the model.
            Ok(_) | Err(RejectedMessages { status: 200, .. }) => Ok(()),
            Err(rejected) => bail!(
                "{}: {rejected}\nhint: check {} (the URL up to `/v1`) and {} (one of its models)",
                self.url,
                self.flags.source,
                self.flags.model
            ),
        }
    }

    /// Sends messages and returns the answer, or the reason why these messages have none. Later
    /// attempts use a higher temperature, so that they differ.
    ///
    /// # Errors
    /// If the endpoint is unreachable, or rejects the key or the model.
    pub(crate) fn ask(
        &self,
        messages: &Value,
        attempt: u32,
    ) -> Result<Result<String, RejectedMessages>> {
        self.ask_with(messages, attempt, PAIR_REQUEST)
    }

    /// As [`Self::ask`], with a number of attempts and a timeout.
    fn ask_with(
        &self,
        messages: &Value,
        attempt: u32,
        policy: RequestPolicy,
    ) -> Result<Result<String, RejectedMessages>> {
        let mut pause = self.first_pause;
        for remaining in (0..policy.max_attempts).rev() {
            let failure =
                match self.send_with_supported_parameters(messages, attempt, policy.timeout) {
                    Ok((status @ 200, text)) => {
                        // JSON can spell the key with escapes.
                        let answer = match parse_answer(&text) {
                            Ok(answer) => Ok(self.hide_key(&answer)),
                            Err(reason) => {
                                Err(RejectedMessages { status, reason: self.hide_key(&reason) })
                            }
                        };
                        return Ok(answer);
                    }
                    // The endpoint rejects these messages; it may accept those of another pair.
                    Ok((status @ (400 | 413 | 422), text)) => {
                        let reason = format!(
                            "the endpoint rejected the request with status {status}: {}",
                            shorten(&text)
                        );
                        return Ok(Err(RejectedMessages { status, reason }));
                    }
                    Ok((status @ (408 | 429 | 500..), text)) => {
                        format!("status {status}: {}", shorten(&text))
                    }
                    Ok((status, text)) => bail!(
                        "{}: status {status}: {}\n\
                     hint: check {} (the URL up to `/v1`), {} (one of its models) and {} (its key)",
                        self.url,
                        shorten(&text),
                        self.flags.source,
                        self.flags.model,
                        self.flags.key_variable
                    ),
                    Err(failure) => failure,
                };
            if remaining == 0 {
                let failure = format!(
                    "{}: {failure}\nhint: check that the endpoint is running, then run the same command to resume",
                    self.url
                );
                return Err(RunFailure(failure).into());
            }
            std::thread::sleep(pause);
            pause = pause.saturating_mul(4);
        }
        bail!("{}: no request was sent", self.url)
    }

    /// Sends a request, and repeats it without each parameter that the model rejects.
    fn send_with_supported_parameters(
        &self,
        messages: &Value,
        attempt: u32,
        timeout: Duration,
    ) -> Result<(u16, String), String> {
        loop {
            let (status, text) = self.send(&self.body(messages, attempt), timeout)?;
            let mut rejected =
                self.rejected_parameters.lock().unwrap_or_else(PoisonError::into_inner);
            let next = OPTIONAL_PARAMETERS
                .iter()
                .find(|name| !rejected.contains(**name) && text.contains(**name));
            match next {
                Some(name) if status == 400 => rejected.insert(name),
                _ => return Ok((status, text)),
            };
        }
    }

    /// Returns the request body without the parameters that the model rejects.
    fn body(&self, messages: &Value, attempt: u32) -> String {
        let rejected = self.rejected_parameters.lock().unwrap_or_else(PoisonError::into_inner);
        let mut body = json!({"model": self.model, "messages": messages});
        let limit_name = if rejected.contains(OPTIONAL_PARAMETERS[0]) {
            "max_completion_tokens"
        } else {
            OPTIONAL_PARAMETERS[0]
        };
        body[limit_name] = MAX_TOKENS.into();
        let temperature = if attempt == 0 { 0.0 } else { 0.3 };
        for (name, value) in
            [(OPTIONAL_PARAMETERS[1], json!(temperature)), (OPTIONAL_PARAMETERS[2], json!(attempt))]
        {
            if !rejected.contains(name) {
                body[name] = value;
            }
        }
        body.to_string()
    }

    /// Sends one request. Returns the status and the response body without the key, which a server
    /// may repeat.
    fn send(&self, body: &str, timeout: Duration) -> Result<(u16, String), String> {
        let request = self.client.post(&self.url).body(body.to_owned()).timeout(timeout);
        let mut request = request.header("content-type", "application/json");
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.secret());
        }
        let (status, body) = self.runtime.block_on(async {
            let mut response = request.send().await.map_err(|error| root_cause(&error))?;
            let status = response.status().as_u16();
            if status != 200 {
                return Ok((status, read_error_body(&mut response, MAX_ERROR_BYTES).await));
            }
            let body = read_body(&mut response, MAX_RESPONSE_BYTES).await;
            let body = body.map_err(|error| root_cause(&error))?;
            let body = body
                .ok_or_else(|| format!("the response is longer than {MAX_RESPONSE_BYTES} bytes"))?;
            Ok::<_, String>((status, body))
        })?;
        Ok((status, self.hide_key(&String::from_utf8_lossy(&body))))
    }

    /// Replaces the key in a text.
    fn hide_key(&self, text: &str) -> String {
        match &self.key {
            Some(key) => key.hide_in(text).into_owned(),
            None => text.to_owned(),
        }
    }
}

/// Messages without an answer, although the endpoint works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RejectedMessages {
    /// Status of the response.
    pub(crate) status: u16,
    /// Why there is no answer.
    pub(crate) reason: String,
}

impl fmt::Display for RejectedMessages {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)
    }
}

/// Extracts the answer from a response body, or the reason why there is none.
fn parse_answer(body: &str) -> Result<String, String> {
    let reply: Value = serde_json::from_str(body)
        .map_err(|_| format!("the response is not JSON: {}", shorten(body)))?;
    let message = &reply["choices"][0]["message"];
    match (message["content"].as_str(), message["refusal"].as_str()) {
        (Some(text), _) => Ok(text.to_owned()),
        (None, Some(refusal)) => Err(format!("the model refused to answer: {}", shorten(refusal))),
        (None, None) => Err("the response has no `choices[0].message.content`".to_owned()),
    }
}

/// Shortens a response body to one line for an error message, without control characters and
/// without credentials in URLs.
fn shorten(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = hide_url_secrets(&escape_control_chars(&line)).into_owned();
    line.chars().take(MAX_PRINTED_CHARS).collect()
}
