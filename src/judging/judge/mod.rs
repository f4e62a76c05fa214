//! The `Judge` trait. A judge is a panel, or the scripted judge of the tests.

pub mod recorded_verdict;
pub mod scripted;

use std::sync::Arc;

use acem3_conclusion::Verdict;
use acem3_experts::Aspect;
use acem3_experts::prompt::Form;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checkpoints::panel::limits::PanelLimits;
use crate::data::cases::{Case, UnscoredReason};
use crate::data::images::LoadedImage;
use crate::judging::provenance::Provenance;

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

    /// Returns the texts of a pair of responses. A missing response is empty.
    pub fn pair_texts(&self) -> [&str; 2] {
        let texts = self.texts();
        [0, 1].map(|i| texts.get(i).copied().unwrap_or_default())
    }
}

/// Reason why responses or a case have no verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unscored {
    /// Category of the failure.
    pub reason: UnscoredReason,
    /// Message with expected and found values.
    pub message: String,
}

/// Returns verdicts on responses.
///
/// A verdict depends only on its job, never on the rest of the batch.
pub trait Judge {
    /// Returns the name for tables, on one line, with version or hash.
    fn name(&self) -> String;

    /// Returns the device, for the manifest.
    fn device(&self) -> String;

    /// Returns the form of judging.
    fn form(&self) -> Form {
        Form::Pair
    }

    /// Returns the lowest and the highest score of a criterion.
    fn score_range(&self) -> [u8; 2] {
        [0, 5]
    }

    /// Returns true if the judge scores an aspect. The default is the rubric of ACE-M³.
    fn scores_aspect(&self, aspect: Aspect) -> bool {
        Aspect::ALL.contains(&aspect)
    }

    /// Returns true if the judge sees the reference answer.
    fn shows_reference(&self) -> bool {
        false
    }

    /// Returns everything that can change a verdict: hashes of weights, tokenizer, rubric and
    /// layout, decoding settings, and presentation orders. It is part of the key of every verdict.
    fn provenance(&self) -> Provenance;

    /// Returns true if the prompts speak of an image even if a case has none, because the judge was
    /// trained on these prompts.
    fn assumes_image(&self) -> bool {
        false
    }

    /// Returns what the judge is known to judge badly; `None` if nothing is known.
    fn limits(&self) -> Option<&PanelLimits> {
        None
    }

    /// Returns why no prompt can hold a text, for example because it has more tokens than the
    /// context; `None` if a prompt may hold it. A run asks once per text, so that it does not
    /// tokenise a long response again for each pair.
    ///
    /// # Errors
    ///
    /// An error ends the run.
    fn reject_text(&self, text: &str) -> anyhow::Result<Option<String>>;

    /// Judges responses and returns one result per job, in order.
    ///
    /// # Errors
    ///
    /// An error ends the run. If only one job fails, its result is an [`Unscored`].
    fn judge(&mut self, jobs: &[JudgeJob]) -> anyhow::Result<Vec<Result<Verdict, Unscored>>>;
}
