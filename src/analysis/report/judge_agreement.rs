//! Judges compared: on what they differ with each other, and which agrees better with labels.

use anyhow::Result;
use serde::Serialize;

use crate::analysis::agreement::{
    Agreement, AgreementConfig, JudgeComparison, agreement, compare_judges, join_labels,
};
use crate::analysis::report::judge_report::{Inputs, JudgeReport};
use crate::analysis::verdicts::{PairVerdict, Verdicts};
use crate::data::labels::{LabelEntry, LabelValue, ScoreTarget, Vote};

/// Two judges.
#[derive(Clone, Debug, Serialize)]
pub struct JudgeAgreement {
    /// The first judge's orders beside the second's, as if that one were a rater; absent where they share no
    /// pair.
    pub orders: Option<Agreement>,
    /// Both beside the labels; absent without any.
    pub against: Option<JudgeComparison>,
}

/// Compares two judges.
///
/// # Errors
///
/// If statistics cannot be computed for want of memory of what was asked; not for want of shared pairs.
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

/// A judge's orders in the form of a rater's preferences.
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
