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
        let evidence = AuditVerdicts::new(verdicts, units, request.bootstrap);
        let probes = request.probes.iter();
        let findings = probes.map(|probe| evidence.run_probe(*probe)).collect();
        check_thresholds(audit_result(&evidence, request, findings), &request.limits)
    }
}

/// Compares an audit with thresholds.
pub(super) fn check_thresholds(audit: AuditResult, thresholds: &[Threshold]) -> AuditResult {
    let limits = thresholds.iter().map(|threshold| threshold.check(&audit));
    AuditResult {
        limits: limits.collect(),
        ..audit
    }
}

/// The result of an audit with these findings, before thresholds.
pub(super) fn audit_result(
    evidence: &AuditVerdicts<'_>,
    request: &AuditRequest,
    findings: Vec<Finding>,
) -> AuditResult {
    let verdicts = evidence.verdicts;
    AuditResult {
        schema: SCHEMA,
        version: Manifest::VERSION.to_owned(),
        source: verdicts.path.display().to_string(),
        judge: verdicts.name.clone(),
        judge_hash: verdicts.judge.clone(),
        labels: None,
        pairs: verdicts.pairs.len(),
        unscored: verdicts.unscored(),
        labelled: evidence.labelled(),
        unreadable: verdicts.without_pair,
        judged: 0,
        draws: request.bootstrap.draws,
        seed: request.bootstrap.seed,
        probes: findings,
        limits: Vec::new(),
        trials: Vec::new(),
    }
}
