//! The figures of all judges.

use anyhow::Result;
use serde::Serialize;

use super::audit::ReportAudit;
use crate::analysis::report::judge_agreement::{JudgeAgreement, compared};
use crate::analysis::report::judge_report::{Inputs, JudgeReport};
use crate::analysis::verdicts::ScoreKind;
use crate::data::labels::ScoreTarget;
use crate::judging::run::manifest::Manifest;

/// The version of this form. Fields are added, never renamed.
const SCHEMA: u32 = 1;

/// All that is told but the cases.
#[derive(Clone, Debug, Serialize)]
pub struct ReportData {
    /// The version of this form.
    pub schema: u32,
    /// The version of this program.
    pub version: &'static str,
    /// What models are compared by.
    pub target: ScoreTarget,
    /// Which of the judges' scores.
    pub scores: ScoreKind,
    /// Draws of the bootstrap.
    pub draws: usize,
    /// Its seed.
    pub seed: u64,
    /// The judges, in the order in which their records were named.
    pub judges: Vec<JudgeReport>,
    /// The first judge beside each of the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<JudgeAgreement>,
    /// What an audit found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<ReportAudit>,
}

impl ReportData {
    /// The figures of some judges.
    ///
    /// # Errors
    ///
    /// If two judges cannot be compared.
    pub fn of(
        judges: Vec<JudgeReport>,
        audit: Option<ReportAudit>,
        inputs: &Inputs,
    ) -> Result<Self> {
        let mut both = Vec::new();
        if let Some((first, others)) = judges.split_first() {
            for other in others {
                both.push(compared(first, other, inputs)?);
            }
        }
        Ok(Self {
            schema: SCHEMA,
            version: Manifest::VERSION,
            target: inputs.target,
            scores: inputs.scores,
            draws: inputs.bootstrap.draws,
            seed: inputs.bootstrap.seed,
            judges,
            compared: both,
            audit,
        })
    }

    /// Whether several judges are shown beside each other.
    pub fn several(&self) -> bool {
        self.judges.len() > 1
    }
}
