//! What an audit found, as it is written and read again.

use serde::{Deserialize, Serialize};

use super::probe::Probe;
use super::trial::AuditTrial;
use crate::analysis::audit::audit_estimate::AuditEstimate;
use crate::analysis::audit::threshold::ThresholdResult;

/// The version of the audit's form. Fields are added, never renamed.
pub const SCHEMA: u32 = 1;

/// Everything an audit found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditResult {
    /// The version of this form.
    pub schema: u32,
    /// The version of the program.
    pub version: String,
    /// What was audited, as it was typed: records or cases.
    pub source: String,
    /// The judge, as it is called in tables.
    pub judge: String,
    /// The hash of the judge's provenance, as records have it.
    pub judge_hash: String,
    /// Where the labels are from: a file; `None` for the records' or cases' own.
    pub labels: Option<String>,
    /// Pairs whose verdicts were looked at.
    pub pairs: usize,
    /// Those of them without a verdict.
    pub unscored: usize,
    /// Those of them with a label of which response is better, or that neither is.
    pub labelled: usize,
    /// Cases that could not be read.
    pub unreadable: usize,
    /// Verdicts that were made for the audit, those on the unchanged pairs among them.
    pub judged: usize,
    /// Draws of the bootstrap.
    pub draws: usize,
    /// The seed of the bootstrap and of what is drawn by lot.
    pub seed: u64,
    /// What each probe found.
    pub probes: Vec<Finding>,
    /// The thresholds that were asked for.
    pub limits: Vec<ThresholdResult>,
    /// Every changed pair with the verdicts before and after; empty where only verdicts were looked at,
    /// and left out of what is printed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<AuditTrial>,
}

/// What one probe found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The probe.
    pub probe: Probe,
    /// How it ended.
    pub outcome: FindingOutcome,
    /// The finding in one line of words; for a probe that did not run, why.
    pub words: String,
    /// The figures.
    pub measures: Vec<AuditMeasure>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// How a probe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingOutcome {
    /// Nothing wrong was found, by enough cases to have found it.
    Sound,
    /// Something wrong was found.
    Biased,
    /// The cases are too few, or do not differ enough, to tell.
    Unclear,
    /// It could not be run; it has not passed.
    NotRun,
}

/// A figure, its control, and what it is beyond the control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditMeasure {
    /// Its name in files.
    pub key: String,
    /// Its name in tables.
    pub title: String,
    /// What it is counted in.
    pub unit: MeasureUnit,
    /// The figure.
    pub reading: AuditEstimate,
    /// The same figure of the control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<AuditEstimate>,
    /// What the control is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_title: Option<String>,
    /// The figure less the control's, pair by pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond: Option<AuditEstimate>,
}

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasureUnit {
    /// A part of all, 0 to 1; shown in percent.
    Share,
    /// A difference of two shares; shown in percentage points.
    ShareDifference,
    /// Points of a score from 0 to 5.
    Points,
    /// A logarithm of odds.
    LogOdds,
}

impl FindingOutcome {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Biased => "BIASED",
            Self::Unclear => "unclear",
            Self::NotRun => "not run",
        }
    }
}

impl Finding {
    /// A probe that could not be run.
    pub fn not_run(probe: Probe, why: impl Into<String>) -> Self {
        Self {
            probe,
            outcome: FindingOutcome::NotRun,
            words: format!("not run: {}", why.into()),
            measures: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// A figure by its name.
    pub fn measure(&self, key: &str) -> Option<&AuditMeasure> {
        self.measures.iter().find(|measure| measure.key == key)
    }
}

impl AuditMeasure {
    /// A figure without control.
    pub fn new(key: &str, title: &str, unit: MeasureUnit, reading: AuditEstimate) -> Self {
        Self {
            key: key.to_owned(),
            title: title.to_owned(),
            unit,
            reading,
            control: None,
            control_title: None,
            beyond: None,
        }
    }

    /// The same beside its control.
    #[must_use]
    pub fn against(
        self,
        title: &str,
        control: AuditEstimate,
        beyond: Option<AuditEstimate>,
    ) -> Self {
        Self {
            control: Some(control),
            control_title: Some(title.to_owned()),
            beyond,
            ..self
        }
    }

    /// What it comes to: beyond its control, where that is known.
    pub fn net(&self) -> &AuditEstimate {
        self.beyond.as_ref().unwrap_or(&self.reading)
    }
}

impl AuditResult {
    /// What a probe found.
    pub fn finding(&self, probe: Probe) -> Option<&Finding> {
        self.probes.iter().find(|finding| finding.probe == probe)
    }
}
