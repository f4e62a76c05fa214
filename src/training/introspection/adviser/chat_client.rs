//! HTTP client of a chat endpoint: authentication, retry policy, unsupported parameters.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::Read as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use reqwest::Url;
use reqwest::blocking::Client;
use reqwest::redirect::Policy;
use serde_json::{Value, json};

/// Connection timeout.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Request timeout.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(5);
/// Maximum attempts after connection failures and transient errors.
const MAX_ATTEMPTS: u32 = 4;
/// Maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: u64 = 4 << 20;
/// Maximum length of an answer in tokens.
const MAX_TOKENS: u32 = 1500;

/// A model behind `{base}/chat/completions`.
#[derive(Debug)]
pub(crate) struct ChatClient {
    client: Client,
    url: String,
    model: String,
    key: Option<String>,
    /// Pause before the first retry; each later pause is four times as long.
    first_pause: Duration,
    /// Request parameters that the model has rejected.
    rejected_parameters: Mutex<BTreeSet<&'static str>>,
}

/// Sampling parameters that some models reject. Newer models expect `max_completion_tokens` instead
/// of the first one and accept no value for the others.
const OPTIONAL_PARAMETERS: [&str; 3] = ["max_tokens", "temperature", "seed"];

impl ChatClient {
    /// Creates a client for a model behind a base URL.
    pub(crate) fn new(base: &str, model: &str, key: Option<String>) -> Result<Self> {
        let url = format!("{}/chat/completions", base.trim_end_matches('/'));
        let parsed_url = Url::parse(&url);
        let parsed_url = parsed_url.with_context(|| {
            format!(
                "--adviser {base}: not a URL\nhint: pass the base URL, for example https://host/v1"
            )
        })?;
        Ok(Self {
            client: build_client(&parsed_url)?,
            url,
            model: model.to_owned(),
            key,
            first_pause: Duration::from_secs(1),
            rejected_parameters: Mutex::default(),
        })
    }

    /// Returns the model and its URL.
    pub(crate) fn name(&self) -> String {
        format!("{} at {}", self.model, self.url)
    }

    /// Sends messages and returns the answer, or the reason why these messages have none. Later
    /// attempts use a higher temperature, so that they differ.
    ///
    /// # Errors
    /// If the endpoint is unreachable, or rejects the key or the model.
    pub(crate) fn ask(&self, messages: &Value, attempt: u32) -> Result<Result<String, String>> {
        let mut pause = self.first_pause;
        for remaining in (0..MAX_ATTEMPTS).rev() {
            let failure = match self.send_with_supported_parameters(messages, attempt) {
                Ok((200, text)) => return Ok(parse_answer(&text)),
                // The endpoint rejects these messages; it may accept those of another pair.
                Ok((status @ (400 | 413 | 422), text)) => {
                    return Ok(Err(format!(
                        "the endpoint rejected the request with status {status}: {}",
                        shorten(&text)
                    )));
                }
                Ok((status @ (408 | 429 | 500..), text)) => {
                    format!("status {status}: {}", shorten(&text))
                }
                Ok((status, text)) => bail!(
                    "{}: status {status}: {}\n\
                     hint: check --adviser (the URL up to `/v1`), --model (one of its models) and OPENAI_API_KEY (its key)",
                    self.url,
                    shorten(&text)
                ),
                Err(failure) => failure,
            };
            if remaining == 0 {
                bail!(
                    "{}: {failure}\nhint: check that the endpoint is running, then run the same command to resume",
                    self.url
                );
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
    ) -> Result<(u16, String), String> {
        loop {
            let (status, text) = self.send(&self.body(messages, attempt))?;
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

    /// Sends one request. Returns the status and the response body.
    fn send(&self, body: &str) -> Result<(u16, String), String> {
        let request = self.client.post(&self.url).body(body.to_owned());
        let mut request = request.header("content-type", "application/json");
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let reply = request.send().map_err(|error| root_cause(&error))?;
        let status = reply.status().as_u16();
        let mut text = String::new();
        let read = reply.take(MAX_RESPONSE_BYTES + 1).read_to_string(&mut text);
        read.map_err(|error| root_cause(&error))?;
        if text.len() as u64 > MAX_RESPONSE_BYTES {
            return Err(format!("the response is longer than {MAX_RESPONSE_BYTES} bytes"));
        }
        Ok((status, text))
    }
}

/// Builds the HTTP client. It follows no redirects, because they would send the key and the
/// messages to another host. It uses no proxy for a local endpoint.
fn build_client(url: &Url) -> Result<Client> {
    let client = Client::builder()
        .user_agent(concat!("acem3/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(RESPONSE_TIMEOUT);
    let client = match url.host_str() {
        Some("localhost" | "127.0.0.1" | "[::1]") => client.no_proxy(),
        _ => client,
    };
    let client = client.build();
    client.context("cannot set up the HTTP client\nhint: check that CA certificates are installed")
}

/// Returns the innermost cause of an error; the outer errors repeat the URL.
fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
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

/// Shortens a response body to one line for an error message.
fn shorten(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_without_text_is_an_error() {
        let parse =
            |message: Value| parse_answer(&json!({"choices": [{"message": message}]}).to_string());
        assert_eq!(parse(json!({"content": "Yes."})), Ok("Yes.".to_owned()));
        let refusal = parse(json!({"content": null, "refusal": "I cannot\nlook at this."}));
        assert_eq!(refusal, Err("the model refused to answer: I cannot look at this.".to_owned()));
        assert!(parse(json!({"content": null})).unwrap_err().contains("has no"));
        assert!(parse_answer("<html>").unwrap_err().contains("not JSON: <html>"));
    }
}
