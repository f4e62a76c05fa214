//! Journal of answered requests (JSON Lines): no request is paid twice.
//!
//! A resumed run sends the same requests in the same order. Those with an answer in the journal are
//! not sent again.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::chat_client::ChatClient;
use crate::support::digest::Digest;
use crate::support::files::append_file::AppendFile;

/// Status of a request that the endpoint answered.
const ANSWERED: u16 = 200;

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct AnsweredRequest {
    /// Hash of the model, its URL, the messages and the attempt.
    key: Digest,
    /// Model and URL.
    by: String,
    /// Text of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    /// Reason why the answer has no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Append-only journal of the requests of a run.
pub(crate) struct RequestJournal {
    file: AppendFile,
    answers: HashMap<Digest, Result<String, String>>,
}

impl RequestJournal {
    /// Opens or creates a journal and truncates a torn line.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is malformed.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let (file, text) = AppendFile::open(path)?;
        let mut answers = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let request: AnsweredRequest = serde_json::from_str(line).with_context(|| {
                format!(
                    "{} line {}: malformed answer\n\
                     hint: delete the line; its request is sent again",
                    path.display(),
                    number + 1
                )
            })?;
            let answer = request.answer.ok_or(request.problem.unwrap_or_default());
            answers.insert(request.key, answer);
        }
        Ok(Self { file, answers })
    }

    /// Returns the answer of a model to messages from the journal, or requests it. The inner `Err` is
    /// the reason why these messages have none.
    ///
    /// # Errors
    /// If the endpoint is unreachable, or rejects the key or the model, or the journal cannot be
    /// written.
    pub(crate) fn ask(
        &mut self,
        chat: &ChatClient,
        messages: &Value,
        attempt: u32,
    ) -> Result<Result<String, String>> {
        let by = chat.name();
        let key = Digest::sha256(format!("{by}\n{attempt}\n{messages}").as_bytes());
        if let Some(answer) = self.answers.get(&key) {
            return Ok(answer.clone());
        }
        let answer = match chat.ask(messages, attempt)? {
            Ok(answer) => Ok(answer),
            Err(rejected) if rejected.status == ANSWERED => Err(rejected.reason),
            // The endpoint may accept these messages later.
            Err(rejected) => return Ok(Err(rejected.reason)),
        };
        let (text, problem) = (answer.clone().ok(), answer.clone().err());
        let request = AnsweredRequest { key, by, answer: text, problem };
        let line = serde_json::to_string(&request).context("cannot serialise an answer")?;
        self.file.append(&[line])?;
        self.answers.insert(key, answer.clone());
        Ok(answer)
    }
}
