//! The complete result of an audit and its JSON form.

use serde::{Deserialize, Serialize};

use super::finding::Finding;
use super::threshold_result::ThresholdResult;
use super::trial::AuditTrial;
use crate::analysis::audit::probe::Probe;
use crate::support::files::file_form::{FileForm, has_json_fields};

/// Version of the JSON schema. Fields are added, never renamed.
pub const SCHEMA: u32 = 1;

/// Complete result of an audit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditResult {
    /// Version of the JSON schema.
    pub schema: u32,
    /// Version of the program.
    pub version: String,
    /// The audited records or cases, as the user passed them.
    pub source: String,
    /// Name of the judge.
    pub judge: String,
    /// Hash of the judge's provenance, as in records.
    pub judge_hash: String,
    /// File of the labels; `None` for the labels of the records or cases.
    pub labels: Option<String>,
    /// Number of audited pairs.
    pub pairs: usize,
    /// Number of pairs without a verdict.
    pub unscored: usize,
    /// Number of pairs with a label (a preferred response, or a tie).
    pub labelled: usize,
    /// Number of cases that could not be read, or that have no pair.
    pub unreadable: usize,
    /// Number of new verdicts, including those on unchanged pairs.
    pub judged: usize,
    /// Number of bootstrap resamples.
    pub draws: usize,
    /// Seed of the bootstrap and of the sampled perturbations.
    pub seed: u64,
    /// One finding per probe.
    #[serde(rename = "probes")]
    pub findings: Vec<Finding>,
    /// Results of the requested thresholds.
    #[serde(rename = "limits")]
    pub thresholds: Vec<ThresholdResult>,
    /// Every perturbed pair with the verdicts before and after. Empty if nothing was judged, and
    /// omitted from the printed result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<AuditTrial>,
}

impl AuditResult {
    /// The form of an audit file.
    pub const FORM: FileForm = FileForm {
        name: "an audit of acem3",
        recognise: |file| {
            has_json_fields(file, &["schema", "version", "source", "judge_hash", "labelled"])
        },
    };

    /// Returns the finding of a probe.
    pub fn finding(&self, probe: Probe) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.probe == probe)
    }
}
