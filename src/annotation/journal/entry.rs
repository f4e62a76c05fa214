//! The lines of the journals.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::answers::TaskAnswers;
use crate::annotation::study::Part;

/// What a rater did with a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryAction {
    /// Saved a draft, which can be changed.
    Save,
    /// Submitted the answers, which cannot be changed any more.
    Submit,
    /// Skipped the task with a reason. It can still be rated.
    Skip,
    /// Opened the first evaluation of a judge. From here on the rater's ratings of responses are final.
    Open,
}

/// Answers of a rater at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalEntry {
    /// Version of the format, 1.
    pub schema: u32,
    /// Time in UTC.
    pub time: String,
    /// Name of the rater.
    pub rater: String,
    /// Part of the study; absent for the first.
    #[serde(default, skip_serializing_if = "Part::is_responses")]
    pub part: Part,
    /// Id of the case.
    pub case: String,
    /// Models of the responses, in the order of the case.
    pub models: Vec<String>,
    /// True if the rater saw the second response first; in the part about evaluations, the evaluation of
    /// the second judge.
    pub swapped: bool,
    /// What the rater did.
    pub action: EntryAction,
    /// The answers.
    pub answers: TaskAnswers,
    /// Seconds since the page was opened.
    pub seconds: f64,
}

/// Version of both formats.
pub const SCHEMA: u32 = 1;

/// The lines of one journal.
pub trait LineFormat: Serialize + DeserializeOwned {
    /// Name of the file in the output folder.
    const FILE: &str;

    /// Returns the version of the format of a line.
    fn schema(&self) -> u32;
}

impl LineFormat for JournalEntry {
    const FILE: &str = "ratings.jsonl";

    fn schema(&self) -> u32 {
        self.schema
    }
}

/// What the administrator decided about ratings that differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdjudicationEntry {
    /// Version of the format, 1.
    pub schema: u32,
    /// Time in UTC.
    pub time: String,
    /// Key of the criterion, `final` or `preference`.
    pub target: String,
    /// Id of the case.
    pub case: String,
    /// The model of a scored response, or both of a preference.
    pub models: Vec<String>,
    /// Score; for a preference 1 for the first response, 0 for none and −1 for the second.
    pub value: i8,
    /// Reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
}

impl LineFormat for AdjudicationEntry {
    const FILE: &str = "adjudications.jsonl";

    fn schema(&self) -> u32 {
        self.schema
    }
}
