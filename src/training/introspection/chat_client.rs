//! Questions to a chat endpoint: the key, patience, refusals.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::Uri;

use crate::checkpoints::hub::agent;

/// How long a connection is waited for.
const CONNECT: Duration = Duration::from_secs(20);
/// How long an answer is waited for.
const SILENCE: Duration = Duration::from_mins(5);
/// How often a question is put that finds nobody, or somebody too busy.
const TRIES: u32 = 4;
/// The longest answer in bytes, and in tokens.
const ANSWER: u64 = 4 << 20;
const TOKENS: u32 = 1500;

/// A model behind `{base}/chat/completions`.
#[derive(Debug)]
pub(super) struct ChatClient {
    agent: Agent,
    url: String,
    model: String,
    key: Option<String>,
    pause: Duration,
    /// What the model has refused to be told.
    refused: Mutex<BTreeSet<&'static str>>,
}

/// What a question says of the answer, which newer models refuse in part: they call the first `max_completion_tokens`,
/// and choose the others themselves.
const MANNER: [&str; 3] = ["max_tokens", "temperature", "seed"];

impl ChatClient {
    /// A model behind an address.
    pub(super) fn new(base: &str, model: &str, key: Option<String>) -> Result<Self> {
        let url = format!("{}/chat/completions", base.trim_end_matches('/'));
        let address: Uri = url
            .parse()
            .with_context(|| format!("{base} is no address\nhint: as in https://host/v1"))?;
        Ok(Self {
            agent: agent(&address, CONNECT, SILENCE),
            url,
            model: model.to_owned(),
            key,
            pause: Duration::from_secs(1),
            refused: Mutex::default(),
        })
    }

    /// The model and where it is.
    pub(super) fn name(&self) -> String {
        format!("{} at {}", self.model, self.url)
    }

    /// The answer to messages, or why there is none to these; later attempts are a little less certain, so that they
    /// differ.
    ///
    /// # Errors
    /// Where nobody answers, and where the key or the model is refused.
    pub(super) fn ask(&self, messages: &Value, attempt: u32) -> Result<Result<String, String>> {
        let mut pause = self.pause;
        for left in (0..TRIES).rev() {
            let why = match self.put(messages, attempt) {
                Ok((200, text)) => return Ok(answer(&text)),
                // What it will not look at, or cannot: another question may do better.
                Ok((status @ (400 | 413 | 422), text)) => {
                    return Ok(Err(format!(
                        "it refuses with status {status}: {}",
                        first_words(&text)
                    )));
                }
                Ok((status @ (408 | 429 | 500..), text)) => {
                    format!("status {status}: {}", first_words(&text))
                }
                Ok((status, text)) => bail!(
                    "{}: status {status}: {}\n\
                     hint: --adviser is the address up to `/v1`, --model one of its models, OPENAI_API_KEY its key",
                    self.url,
                    first_words(&text)
                ),
                Err(why) => why,
            };
            if left == 0 {
                bail!(
                    "{}: {why}\nhint: see whether it is up; the same command goes on where it stopped",
                    self.url
                );
            }
            std::thread::sleep(pause);
            pause = pause.saturating_mul(4);
        }
        bail!("{}: it was not asked", self.url)
    }

    /// Puts a question, and puts it again without what is refused.
    fn put(&self, messages: &Value, attempt: u32) -> Result<(u16, String), String> {
        loop {
            let (status, text) = self.send(&self.body(messages, attempt))?;
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            let next = MANNER
                .iter()
                .find(|name| !refused.contains(**name) && text.contains(**name));
            match next {
                Some(name) if status == 400 => refused.insert(name),
                _ => return Ok((status, text)),
            };
        }
    }

    fn body(&self, messages: &Value, attempt: u32) -> String {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let mut body = json!({"model": self.model, "messages": messages});
        let limit = if refused.contains(MANNER[0]) {
            "max_completion_tokens"
        } else {
            MANNER[0]
        };
        body[limit] = TOKENS.into();
        let warmth = if attempt == 0 { 0.0 } else { 0.3 };
        for (name, value) in [(MANNER[1], json!(warmth)), (MANNER[2], json!(attempt))] {
            if !refused.contains(name) {
                body[name] = value;
            }
        }
        body.to_string()
    }

    fn send(&self, body: &str) -> Result<(u16, String), String> {
        let mut request = self
            .agent
            .post(&self.url)
            .header("content-type", "application/json");
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let mut reply = request.send(body).map_err(|error| error.to_string())?;
        let status = reply.status().as_u16();
        let text = reply
            .body_mut()
            .with_config()
            .limit(ANSWER)
            .read_to_string();
        Ok((status, text.map_err(|error| error.to_string())?))
    }
}

/// The text of an answer, or why there is none.
fn answer(reply: &str) -> Result<String, String> {
    let reply: Value = serde_json::from_str(reply)
        .map_err(|_| format!("the answer is not JSON: {}", first_words(reply)))?;
    let message = &reply["choices"][0]["message"];
    match (message["content"].as_str(), message["refusal"].as_str()) {
        (Some(text), _) => Ok(text.to_owned()),
        (None, Some(refusal)) => Err(format!("it refuses: {}", first_words(refusal))),
        (None, None) => Err("the answer has no `choices[0].message.content`".to_owned()),
    }
}

/// What of a page is told in a message.
fn first_words(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_a_text_is_a_reason_and_no_failure() {
        let said = |message: Value| answer(&json!({"choices": [{"message": message}]}).to_string());
        assert_eq!(said(json!({"content": "Yes."})), Ok("Yes.".to_owned()));
        let refused = said(json!({"content": null, "refusal": "I cannot\nlook at this."}));
        assert_eq!(
            refused,
            Err("it refuses: I cannot look at this.".to_owned())
        );
        assert!(
            said(json!({"content": null}))
                .unwrap_err()
                .contains("has no")
        );
        assert!(answer("<html>").unwrap_err().contains("not JSON: <html>"));
    }
}
