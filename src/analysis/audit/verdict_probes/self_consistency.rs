//! Ties between byte-identical responses.

use super::audit_verdicts::AuditVerdicts;
use crate::analysis::audit::probe::Probe;
use crate::analysis::audit::result::{ClusteredValues, Finding, MeasureUnit, names, scores_differ};
use crate::analysis::audit::rules::conclude_identical;

/// Checks that byte-identical responses tie in each presentation.
///
/// A verdict that combines both orders of such a pair always ties; a single presentation may not.
pub(super) fn probe_self_consistency(audit_verdicts: &AuditVerdicts<'_>) -> Finding {
    let probe = Probe::SelfConsistency;
    let estimate_not_tied = |is_identical: bool| {
        let pairs = audit_verdicts
            .scored_pairs()
            .filter(move |(v, _)| v.has_identical_responses == is_identical);
        let presentations = pairs.flat_map(|(v, _)| {
            let differ = |[a, b]: [f64; 2]| f64::from(u8::from(scores_differ(a, b)));
            v.orders.iter().map(move |o| (v.cluster.as_str(), differ(o.scores)))
        });
        ClusteredValues::new(presentations)
            .estimate_mean(MeasureUnit::Proportion, audit_verdicts.bootstrap)
    };
    let identical = estimate_not_tied(true);
    if identical.n == 0 {
        let reason = "no pair has two byte-identical responses; the probe `identical` makes such pairs \
                   from cases";
        return Finding::not_run(probe, reason);
    }
    let other = estimate_not_tied(false);
    let conclusion = conclude_identical(&identical, other.value);
    let measure = names::NOT_TIED.measure(identical);
    Finding {
        probe,
        outcome: conclusion.outcome,
        summary: conclusion.sentence,
        worst: None,
        measures: vec![measure.with_control("pairs of different responses", other, None)],
        notes: Vec::new(),
    }
}
