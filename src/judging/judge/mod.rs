//! The `Judge` trait. A judge is a panel, or the scripted judge of the tests.

pub mod recorded_verdict;
pub mod scripted;

use std::sync::Arc;

use acem3_conclusion::Verdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checkpoints::panel::limits::PanelLimits;
use crate::data::cases::{Case, UnscoredReason};
use crate::data::images::LoadedImage;
use crate::judging::provenance::Provenance;

/// A pair of responses of a case, ready to be judged.
#[derive(Clone, Debug)]
pub struct PairJob {
    /// The case, with all its responses.
    pub case: Arc<Case>,
    /// Indices of the two responses.
    pub pair: [usize; 2],
    /// The decoded image; `None` for a case without image.
    pub image: Option<Arc<LoadedImage>>,
}

impl PairJob {
    /// Returns the question.
    pub fn question(&self) -> &str {
        &self.case.question
    }

    /// Returns the texts of the two responses, in pair order.
    pub fn responses(&self) -> [&str; 2] {
        self.pair.map(|i| self.case.responses.get(i).map_or("", |response| &response.text))
    }
}

/// Reason why a pair or case has no verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unscored {
    /// Category of the failure.
    pub reason: UnscoredReason,
    /// Message with expected and found values.
    pub message: String,
}

/// Returns verdicts on pairs.
///
/// A verdict depends only on its job, never on the rest of the batch.
pub trait Judge {
    /// Returns the name for tables, on one line, with version or hash.
    fn name(&self) -> String;

    /// Returns the device, for the manifest.
    fn device(&self) -> String;

    /// Returns everything that can change a verdict: hashes of weights, tokenizer, rubric and
    /// layout, decoding settings, and presentation orders. It is part of the key of every verdict.
    fn provenance(&self) -> Provenance;

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

    /// Judges pairs and returns one result per job, in order.
    ///
    /// # Errors
    ///
    /// An error ends the run. If only one pair fails, its result is an [`Unscored`].
    fn judge(&mut self, jobs: &[PairJob]) -> anyhow::Result<Vec<Result<Verdict, Unscored>>>;
}
