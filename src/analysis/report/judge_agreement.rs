//! Comparison of two judges: agreement with each other and with labels.

use anyhow::Result;
use serde::Serialize;

use crate::analysis::agreement::{
    Agreement, AgreementConfig, JudgeComparison, agreement, compare_judges, join_labels,
};
use crate::analysis::report::judge_report::{Inputs, JudgeReport};
use crate::analysis::verdicts::{PairVerdict, Verdicts};
use crate::data::labels::{LabelEntry, LabelValue, ScoreTarget, Vote};

/// Comparison of two judges.
#[derive(Clone, Debug, Serialize)]
pub struct JudgeAgreement {
    /// Agreement of the first judge with the second, treated as a rater; `None` if they have no pair in
    /// common.
    pub orders: Option<Agreement>,
    /// Agreement of both judges with the labels; `None` without labels.
    pub against: Option<JudgeComparison>,
}

/// Compares two judges.
///
/// # Errors
///
/// A statistic cannot be computed. Missing common pairs are not an error.
pub(super) fn compared(
    first: &JudgeReport,
    second: &JudgeReport,
    inputs: &Inputs,
) -> Result<JudgeAgreement> {
    let target = inputs.target;
    let entries = votes(&second.verdicts, target);
    let shared = join_labels(&first.verdicts, &entries, &second.verdicts.path).ok();
    let plan = AgreementConfig {
        bootstrap: inputs.bootstrap,
        targets: vec![target],
        group_by: Vec::new(),
    };
    let orders = shared
        .map(|units| agreement(&first.verdicts, &units, Some(second.name.clone()), &plan))
        .transpose()?;
    let of = first.units.as_ref().and_then(|u| u.targets.get(&target));
    let judges = [&first.verdicts, &second.verdicts];
    let against = of.and_then(|of| compare_judges(judges, of, target, inputs.bootstrap).ok());
    Ok(JudgeAgreement { orders, against })
}

/// Converts a judge's orders to preferences of a rater.
fn votes(verdicts: &Verdicts, target: ScoreTarget) -> Vec<LabelEntry> {
    let entry = |verdict: &PairVerdict| {
        Some(LabelEntry {
            line: verdict.line,
            case: verdict.case.clone(),
            rater: verdicts.name.clone(),
            target,
            what: LabelValue::Preference {
                models: Some(verdict.pair.clone()),
                vote: Vote::Order(verdict.order(target)?),
            },
        })
    };
    verdicts.pairs.iter().filter_map(entry).collect()
}
