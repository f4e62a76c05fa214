//! Models that write free text: answers to questions, without a format.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use acem3_experts::prompt::PromptPiece;
use serde::{Deserialize, Serialize};

use super::judge_job::Unscored;
use super::server_usage::{EarlierUsage, ServerUsage};
use crate::data::images::LoadedImage;

/// A prompt that a model continues.
#[derive(Clone, Debug)]
pub struct TextRequest {
    /// The prompt, with the place of the image. The model's chat template is added to it.
    pub pieces: Vec<PromptPiece>,
    /// The image; `None` for a prompt without image.
    pub image: Option<Arc<LoadedImage>>,
    /// True if the prompt must not leave this machine.
    pub is_local_only: bool,
}

/// What a model wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenText {
    /// The text, without white space around it. It may have several lines.
    pub text: String,
    /// True if the text ends at the token budget.
    pub is_cut: bool,
    /// Tokens of the prompt, image tokens included; `None` if the server does not count.
    pub prompt_tokens: Option<u64>,
    /// Tokens of the text; `None` if the server does not count.
    pub written_tokens: Option<u64>,
}

/// A finished request: its number, and the text or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedText {
    /// The number under which the request was submitted.
    pub number: u64,
    /// The result.
    pub result: Result<WrittenText, Unscored>,
}

/// Token budget and sampling of a model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TextSampling {
    /// Token budget of a text.
    pub max_tokens: u32,
    /// Temperature; 0 for the most probable token.
    pub temperature: f64,
    /// Number of most probable tokens to draw from; `None` for all.
    pub top_k: Option<u32>,
    /// Seed of the random numbers.
    pub seed: Option<u64>,
}

impl TextSampling {
    /// Returns true if each token is the most probable one.
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }
}

/// Everything about a writer that can change its texts, by name.
pub type WriterSettings = BTreeMap<String, String>;

/// Writes texts. A text depends only on its request, never on others in progress.
pub trait TextWriter {
    /// Describes the model on one line.
    fn describe(&self) -> String;

    /// Returns everything that can change a text, apart from the request.
    fn settings(&self) -> WriterSettings;

    /// Returns true if the model sees images.
    fn sees_images(&self) -> bool;

    /// Returns the maximum number of requests in progress.
    fn capacity(&self) -> usize;

    /// Checks that another request may start.
    ///
    /// # Errors
    ///
    /// The cost limit is reached. Requests in progress still finish.
    fn check_budget(&self) -> anyhow::Result<()>;

    /// Starts a request under a number.
    fn submit(&mut self, number: u64, request: TextRequest);

    /// Waits for the next finished request; `None` if none finishes in time, or none is in progress.
    ///
    /// # Errors
    ///
    /// The model cannot answer any request.
    fn next_finished(&mut self, timeout: Duration) -> anyhow::Result<Option<FinishedText>>;

    /// Returns the requests and tokens so far, those of earlier commands included.
    fn usage(&self) -> ServerUsage;

    /// Returns a note if answers name a different model than before the first question.
    fn describe_other_models(&self) -> Option<String> {
        None
    }

    /// Counts the requests of earlier commands.
    fn add_earlier_usage(&mut self, earlier: EarlierUsage);
}
