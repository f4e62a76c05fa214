//! An audit of existing verdicts.

use super::audit_request::AuditRequest;
use super::result::{AuditResult, Finding, SCHEMA, Threshold};
use super::verdict_probes::AuditVerdicts;
use crate::analysis::agreement::LabelledUnits;
use crate::analysis::verdicts::Verdicts;
use crate::judging::run::manifest::Manifest;

impl AuditResult {
    /// Audits the verdicts of a run, without judging anything.
    pub fn from_verdicts(
        verdicts: &Verdicts,
        units: Option<&LabelledUnits>,
        request: &AuditRequest,
    ) -> Self {
        let audit_verdicts = AuditVerdicts::new(verdicts, units, request.bootstrap);
        let probes = request.probes.iter();
        let findings = probes.map(|probe| audit_verdicts.run_probe(*probe)).collect();
        check_thresholds(audit_result(&audit_verdicts, request, findings), &request.thresholds)
    }
}

/// Compares an audit with thresholds.
pub(super) fn check_thresholds(audit: AuditResult, thresholds: &[Threshold]) -> AuditResult {
    let results = thresholds.iter().map(|threshold| threshold.evaluate(&audit));
    AuditResult { thresholds: results.collect(), ..audit }
}

/// Creates the result of an audit with these findings, before thresholds.
pub(super) fn audit_result(
    audit_verdicts: &AuditVerdicts<'_>,
    request: &AuditRequest,
    findings: Vec<Finding>,
) -> AuditResult {
    let verdicts = audit_verdicts.verdicts;
    AuditResult {
        schema: SCHEMA,
        version: Manifest::VERSION.to_owned(),
        source: verdicts.path.display().to_string(),
        judge: verdicts.name.clone(),
        judge_hash: verdicts.judge.clone(),
        labels: None,
        pairs: verdicts.pairs.len(),
        unscored: verdicts.count_unscored(),
        labelled: audit_verdicts.count_labelled(),
        unreadable: verdicts.without_pair,
        judged: 0,
        draws: request.bootstrap.resamples,
        seed: request.bootstrap.seed,
        findings,
        thresholds: Vec::new(),
        trials: Vec::new(),
    }
}
