//! What a judge judges: responses of a case, and the reason if there is no verdict.

use std::sync::Arc;

use acem3_experts::prompt::JudgeInput;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::cases::{Case, UnscoredReason};
use crate::data::images::LoadedImage;

/// Responses of a case that are judged together: two, or one alone.
#[derive(Clone, Debug)]
pub struct JudgeJob {
    /// The case, with all its responses.
    pub case: Arc<Case>,
    /// Indices of the responses to judge.
    pub responses: Vec<usize>,
    /// The decoded image; `None` for a case without image.
    pub image: Option<Arc<LoadedImage>>,
}

impl JudgeJob {
    /// Returns the question.
    pub fn question(&self) -> &str {
        &self.case.question
    }

    /// Returns the texts of the responses to judge, in the order of the record.
    pub fn texts(&self) -> Vec<&str> {
        let text = |i: &usize| self.case.responses.get(*i).map_or("", |r| r.text.as_str());
        self.responses.iter().map(text).collect()
    }

    /// Returns what a prompt shows in one presentation order. `rotation`: the index of the response that
    /// is shown first.
    pub fn to_input(
        &self,
        rotation: usize,
        shows_reference: bool,
        has_image: bool,
    ) -> JudgeInput<'_> {
        let mut responses = self.texts();
        responses.rotate_left(rotation);
        let reference = self.case.reference.as_deref().filter(|_| shows_reference);
        JudgeInput { has_image, question: self.question(), reference, responses }
    }

    /// Returns the texts of a pair of responses in presentation order. A missing response is empty.
    pub fn shown_pair(&self, swapped: bool) -> [&str; 2] {
        let texts = self.texts();
        let shown = if swapped { [1, 0] } else { [0, 1] };
        shown.map(|i| texts.get(i).copied().unwrap_or_default())
    }
}

/// Reason why responses or a case have no verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unscored {
    /// Category of the failure.
    pub reason: UnscoredReason,
    /// Message with expected and found values.
    pub message: String,
    /// False if the judge is not bit-reproducible; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reproducible: Option<bool>,
}

impl Unscored {
    /// Creates the reason of a reproducible judge or an input problem.
    pub fn new(reason: UnscoredReason, message: String) -> Self {
        Self { reason, message, reproducible: None }
    }
}
