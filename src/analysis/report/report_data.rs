//! Data of a report: the statistics of all judges.

use anyhow::Result;
use serde::Serialize;

use super::audit::ReportAudit;
use super::baseline::BaselineComparison;
use crate::analysis::report::judge_agreement::{JudgeAgreement, compare_judge_pair};
use crate::analysis::report::judge_report::{JudgeReport, JudgeReportSettings};
use crate::analysis::verdicts::ScoreKind;
use crate::data::labels::ScoreTarget;
use crate::judging::run::manifest::Manifest;

/// Schema version of the JSON output. Fields are added, never renamed.
const SCHEMA: u32 = 1;

/// All data of a report except the case browser.
#[derive(Clone, Debug, Serialize)]
pub struct ReportData {
    /// Schema version.
    pub schema: u32,
    /// Version of acem3.
    pub version: &'static str,
    /// Score target for comparisons and the ranking.
    pub target: ScoreTarget,
    /// Kind of score: chosen or expected.
    pub scores: ScoreKind,
    /// Number of bootstrap resamples.
    pub draws: usize,
    /// Seed of the bootstrap.
    pub seed: u64,
    /// Judges, in the order of the command line.
    pub judges: Vec<JudgeReport>,
    /// Comparisons of the first judge with each other judge.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<JudgeAgreement>,
    /// What changed since an earlier run, for the first judge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BaselineComparison>,
    /// Findings of an audit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<ReportAudit>,
}

impl ReportData {
    /// Combines the reports of judges and compares the first judge with the others.
    ///
    /// # Errors
    ///
    /// Two judges cannot be compared.
    pub fn new(
        judges: Vec<JudgeReport>,
        audit: Option<ReportAudit>,
        settings: &JudgeReportSettings,
    ) -> Result<Self> {
        let mut comparisons = Vec::new();
        if let Some((first, others)) = judges.split_first() {
            for other in others {
                comparisons.push(compare_judge_pair(first, other, settings)?);
            }
        }
        Ok(Self {
            schema: SCHEMA,
            version: Manifest::VERSION,
            target: settings.target,
            scores: settings.score_kind,
            draws: settings.bootstrap.resamples,
            seed: settings.bootstrap.seed,
            judges,
            compared: comparisons,
            baseline: None,
            audit,
        })
    }

    /// Returns true if the report has more than one judge.
    pub fn has_several_judges(&self) -> bool {
        self.judges.len() > 1
    }
}
