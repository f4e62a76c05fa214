//! One line of an answers file: the answer to a question, or the reason why there is none.

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::data::cases::UnscoredReason;
use crate::judging::judge::Unscored;
use crate::judging::judge::text_writer::WrittenText;
use crate::support::digest::Digest;

/// One line of an answers file, in LLaVA's format with further fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerRecord {
    /// Id of the case.
    pub question_id: String,
    /// The prompt, without the image.
    pub prompt: String,
    /// The answer, or the reason for none.
    #[serde(flatten)]
    pub outcome: AnswerOutcome,
    /// Name of the model.
    pub model_id: String,
    /// Hash of the settings of the run.
    pub settings: String,
    /// Hash of the settings, the id, the prompt and the image.
    pub key: Digest,
}

/// An answer, or the reason for none. Such a line has no `text`: an answer is never empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AnswerOutcome {
    /// The answer.
    Answered {
        /// The text.
        text: String,
        /// True if the text ends at the token budget.
        #[serde(default, skip_serializing_if = "is_false")]
        cut: bool,
        /// Tokens of the prompt, image tokens included.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt_tokens: Option<u64>,
        /// Tokens of the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        written_tokens: Option<u64>,
    },
    /// No answer.
    Unanswered {
        /// Category of the reason.
        unanswered: UnscoredReason,
        /// The reason.
        message: String,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl AnswerOutcome {
    /// Converts what a model wrote.
    pub fn from_result(result: Result<WrittenText, Unscored>) -> Self {
        match result {
            Ok(WrittenText { text, is_cut, prompt_tokens, written_tokens }) => {
                Self::Answered { text, cut: is_cut, prompt_tokens, written_tokens }
            }
            Err(unscored) => Self::from_unscored(unscored),
        }
    }

    /// Converts the reason for no answer.
    pub fn from_unscored(unscored: Unscored) -> Self {
        Self::Unanswered { unanswered: unscored.reason, message: unscored.message }
    }

    /// Returns false if another attempt may give an answer.
    pub fn is_reusable(&self) -> bool {
        !matches!(self, Self::Unanswered { unanswered: UnscoredReason::Transport, .. })
    }

    /// Returns true if the model read the question. It does not if the image cannot be shown.
    pub fn is_of_model(&self) -> bool {
        !matches!(self, Self::Unanswered { unanswered: UnscoredReason::Image, .. })
    }
}

impl AnswerRecord {
    /// Returns the record as a line with its line break.
    ///
    /// # Errors
    ///
    /// The record cannot be written as JSON.
    pub fn to_line(&self) -> Result<String> {
        Ok(serde_json::to_string(self).context("cannot write an answer as JSON")? + "\n")
    }

    /// Parses a line; `None` if it is not one of this command.
    pub fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_back() {
        let record = |outcome| AnswerRecord {
            question_id: "q1".to_owned(),
            prompt: "Is it?".to_owned(),
            outcome,
            model_id: "m".to_owned(),
            settings: "0123456789abcdef".to_owned(),
            key: Digest::sha256(b"key"),
        };
        let text = WrittenText {
            text: "Yes,\nit is.".to_owned(),
            is_cut: true,
            prompt_tokens: Some(9),
            written_tokens: None,
        };
        let missing = Unscored::new(UnscoredReason::Transport, "no answer".to_owned());
        for (result, field, is_reusable) in [
            (Ok(text), "\"cut\":true", true),
            (Err(missing), "\"unanswered\":\"transport\"", false),
        ] {
            let record = record(AnswerOutcome::from_result(result));
            let line = record.to_line().unwrap();
            assert!(line.contains(field), "{line}");
            assert_eq!(record.outcome.is_reusable(), is_reusable);
            assert_eq!(AnswerRecord::parse(line.as_bytes()), Some(record));
        }
        assert_eq!(AnswerRecord::parse(b"{\"question_id\": \"1\", \"text\": \"a\"}"), None);
    }
}
