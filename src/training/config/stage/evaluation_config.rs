//! File of evaluations of a stage: the table `[stages.evaluations]`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::curriculum::Curriculum;
use crate::training::config::activation_dtype::ActivationDtype;

/// A file of evaluations that an `sft` or `heads` stage trains on instead of generated examples.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluationConfig {
    /// JSON lines with `prompt`, `completion` (or `chosen`), `images`, `member` and `quality`, in
    /// the format of `acem3 data preferences` and of TRL; relative to the configuration file. A
    /// tenth of the lines of each member, at most 48, becomes the validation split.
    pub file: PathBuf,
    /// Trains in three blocks ordered by quality: `"disjoint"`, or `true` for overlapping blocks.
    #[serde(default, skip_serializing_if = "Curriculum::is_none")]
    pub curriculum: Curriculum,
    /// Removes the questions that a member asked, with the evidence that it read, and the sentence of
    /// the prompt that it may ask.
    #[serde(default, rename = "strip_questions", skip_serializing_if = "std::ops::Not::not")]
    pub strips_questions: bool,
    /// Element type of the frozen-activation cache. Without it, frozen layers run again in every
    /// step.
    #[serde(default, rename = "store", skip_serializing_if = "Option::is_none")]
    pub cache_dtype: Option<ActivationDtype>,
}
