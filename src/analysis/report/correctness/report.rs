//! Data of a report on correctness: the statistics of all judges.

use acem3_experts::prompt::Form;
use serde::Serialize;

use super::changes::GradeChanges;
use super::graded_judge::GradedJudge;
use crate::judging::run::manifest::Manifest;
use crate::statistics::Bootstrap;

/// Schema version of the JSON output. Fields are added, never renamed.
const SCHEMA: u32 = 1;

/// All data of a report on correctness except the case browser.
#[derive(Clone, Debug, Serialize)]
pub struct GradedReport {
    /// Schema version.
    pub schema: u32,
    /// Version of acem3.
    pub version: &'static str,
    /// The form of judging: `correctness`.
    pub form: Form,
    /// Number of bootstrap resamples.
    pub draws: usize,
    /// Seed of the bootstrap.
    pub seed: u64,
    /// Judges, in the order of the command line.
    pub judges: Vec<GradedJudge>,
    /// What changed since an earlier run, for the first judge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<GradeChanges>,
}

impl GradedReport {
    /// Combines the statistics of judges.
    pub fn new(judges: Vec<GradedJudge>, bootstrap: Bootstrap) -> Self {
        Self {
            schema: SCHEMA,
            version: Manifest::VERSION,
            form: Form::Correctness,
            draws: bootstrap.resamples,
            seed: bootstrap.seed,
            judges,
            baseline: None,
        }
    }
}
