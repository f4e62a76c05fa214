//! Questions to a chat endpoint: the key, patience, refusals.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::Uri;

use crate::hub::agent;

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
pub(super) struct Chat {
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

impl Chat {
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

    /// The answer to messages; later attempts are a little less certain, so that they differ.
    pub(super) fn ask(&self, messages: &Value, attempt: u32) -> Result<String> {
        let mut pause = self.pause;
        for left in (0..TRIES).rev() {
            let why = match self.put(messages, attempt) {
                Ok((200, text)) => return answer(&text).with_context(|| self.url.clone()),
                Ok((status @ (408 | 429 | 500..), text)) => {
                    format!("status {status}: {}", first_words(&text))
                }
                Ok((status, text)) => bail!(
                    "{}: status {status}: {}\n\
                     hint: --suggest is the address up to `/v1`, --model one of its models, OPENAI_API_KEY its key",
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

/// The text of an answer.
fn answer(reply: &str) -> Result<String> {
    let reply: Value = serde_json::from_str(reply).context("the answer is not JSON")?;
    let text = reply["choices"][0]["message"]["content"].as_str();
    let text = text.context("the answer has no `choices[0].message.content`")?;
    Ok(text.to_owned())
}

/// What of a page is told in a message.
fn first_words(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(200).collect()
}
