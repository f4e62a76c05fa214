//! Comparison of two judges: agreement with each other and with labels.

use anyhow::Result;
use serde::Serialize;

use crate::analysis::agreement::{
    Agreement, AgreementConfig, JudgeComparison, compare_judges, compute_agreement, join_labels,
};
use crate::analysis::report::judge_report::{JudgeReport, JudgeReportSettings};
use crate::analysis::verdicts::{PairVerdict, Verdicts};
use crate::data::labels::{LabelEntry, LabelValue, ScoreTarget, Vote};

/// Comparison of two judges.
#[derive(Clone, Debug, Serialize)]
pub struct JudgeAgreement {
    /// Agreement of the first judge with the second, which is treated as a rater. `None` if they
    /// have no pair in common.
    pub orders: Option<Agreement>,
    /// Agreement of both judges with the labels; `None` without labels.
    pub against: Option<JudgeComparison>,
}

/// Compares two judges.
///
/// # Errors
///
/// A statistic cannot be computed. Missing common pairs are not an error.
pub(super) fn compare_judge_pair(
    first: &JudgeReport,
    second: &JudgeReport,
    settings: &JudgeReportSettings,
) -> Result<JudgeAgreement> {
    let target = settings.target;
    let entries = orders_as_votes(&second.verdicts, target);
    let units = join_labels(&first.verdicts, &entries, &second.verdicts.path).ok();
    let config = AgreementConfig {
        bootstrap: settings.bootstrap,
        targets: vec![target],
        group_by: Vec::new(),
    };
    let orders = units
        .map(|units| compute_agreement(&first.verdicts, &units, Some(second.name.clone()), &config))
        .transpose()?;
    let target_units = first.units.as_ref().and_then(|u| u.targets.get(&target));
    let judges = [&first.verdicts, &second.verdicts];
    let against = target_units
        .and_then(|units| compare_judges(judges, units, target, settings.bootstrap).ok());
    Ok(JudgeAgreement { orders, against })
}

/// Converts a judge's orders to preferences of a rater.
fn orders_as_votes(verdicts: &Verdicts, target: ScoreTarget) -> Vec<LabelEntry> {
    let entry = |verdict: &PairVerdict| {
        Some(LabelEntry {
            line: verdict.line,
            case: verdict.case.clone(),
            rater: verdicts.name.clone(),
            target,
            value: LabelValue::Preference {
                models: Some(verdict.pair.clone()),
                vote: Vote::Order(verdict.order(target)?),
            },
        })
    };
    verdicts.pairs.iter().filter_map(entry).collect()
}
