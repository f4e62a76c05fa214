//! Labels in the format of cases: one score per response and score target.

use super::entry::{LabelEntry, LabelValue, UNNAMED_RATER};
use super::target::ScoreTarget;
use crate::data::cases::CaseLabels;

/// Returns the labels that a record copied from its case.
pub fn labels_from_record(
    case: Option<&str>,
    models: &[String],
    labels: Option<&CaseLabels>,
    line: u64,
) -> Vec<LabelEntry> {
    let (Some(case), Some(labels)) = (case, labels) else {
        return Vec::new();
    };
    // Records written by acem3 have one score per response, so the conversion does not fail.
    entries_per_model(line, case, UNNAMED_RATER, models, labels).unwrap_or_default()
}

/// Converts the labels of a case to one entry per model and score target.
pub(super) fn entries_per_model(
    line: u64,
    case: &str,
    rater: &str,
    models: &[String],
    labels: &CaseLabels,
) -> Result<Vec<LabelEntry>, String> {
    let final_scores = labels.final_scores.iter().map(|scores| (ScoreTarget::Final, scores));
    let aspects = labels.aspects.iter().map(|(a, scores)| (ScoreTarget::Aspect(*a), scores));
    let criteria = labels.criteria.iter().map(|(c, scores)| (ScoreTarget::Criterion(*c), scores));
    let mut entries = Vec::new();
    for (target, scores) in final_scores.chain(aspects).chain(criteria) {
        if scores.len() != models.len() {
            return Err(format!(
                "label `{}` has {} scores, expected {}: one per response",
                target.key(),
                scores.len(),
                models.len()
            ));
        }
        entries.extend(models.iter().zip(scores).map(|(model, value)| LabelEntry {
            line,
            case: case.to_owned(),
            rater: rater.to_owned(),
            target,
            value: LabelValue::Score { model: model.clone(), value: *value },
        }));
    }
    Ok(entries)
}
