//! Ties between byte-identical responses.

use super::audit_verdicts::AuditVerdicts;
use crate::analysis::audit::probe::Probe;
use crate::analysis::audit::result::{ClusteredValues, Finding, MeasureUnit, names, scores_differ};
use crate::analysis::audit::rules::conclude_identical;

/// Checks that byte-identical responses tie in each presentation.
///
/// A verdict that combines both orders always ties; a single presentation need not.
pub(super) fn probe_self_consistency(evidence: &AuditVerdicts<'_>) -> Finding {
    let probe = Probe::SelfConsistency;
    let not_tied = |identical: bool| {
        let pairs = evidence
            .scored()
            .filter(move |(v, _)| v.identical == identical);
        let presentations = pairs.flat_map(|(v, _)| {
            let differ = |[a, b]: [f64; 2]| f64::from(u8::from(scores_differ(a, b)));
            v.orders
                .iter()
                .map(move |o| (v.cluster.as_str(), differ(o.scores)))
        });
        ClusteredValues::new(presentations).mean(MeasureUnit::Share, evidence.bootstrap)
    };
    let identical = not_tied(true);
    if identical.n == 0 {
        let why = "no pair has two responses that are the same, byte by byte; the probe `identical` \
                   makes such pairs from cases";
        return Finding::not_run(probe, why);
    }
    let other = not_tied(false);
    let conclusion = conclude_identical(&identical, other.value);
    let measure = names::NOT_TIED.measure(identical);
    Finding {
        probe,
        outcome: conclusion.outcome,
        words: conclusion.sentence,
        measures: vec![measure.with_control("pairs that differ", other, None)],
        notes: Vec::new(),
    }
}
