//! Labels in the form of a case: one score per response and target.

use super::entry::{Entry, ONE_RATER, What};
use super::target::Target;
use crate::data::cases::Labels;

/// The labels that a record carries from its case.
pub fn own(
    case: Option<&str>,
    pair: Option<&[String; 2]>,
    labels: Option<&Labels>,
    line: u64,
) -> Vec<Entry> {
    let (Some(case), Some(pair), Some(labels)) = (case, pair, labels) else {
        return Vec::new();
    };
    // A record that this program wrote has a score for each of the two.
    spread(line, case, ONE_RATER, (pair, labels)).unwrap_or_default()
}

/// Scores of each model.
pub(super) fn spread(
    line: u64,
    case: &str,
    rater: &str,
    (models, labels): (&[String], &Labels),
) -> Result<Vec<Entry>, String> {
    let last = labels.last.iter().map(|scores| (Target::Final, scores));
    let aspects = labels
        .aspects
        .iter()
        .map(|(a, scores)| (Target::Aspect(*a), scores));
    let criteria = labels
        .criteria
        .iter()
        .map(|(c, scores)| (Target::Criterion(*c), scores));
    let mut entries = Vec::new();
    for (target, scores) in last.chain(aspects).chain(criteria) {
        if scores.len() != models.len() {
            return Err(format!(
                "label `{}` has {} scores, expected {}: one per response",
                target.key(),
                scores.len(),
                models.len()
            ));
        }
        entries.extend(models.iter().zip(scores).map(|(model, value)| Entry {
            line,
            case: case.to_owned(),
            rater: rater.to_owned(),
            target,
            what: What::Score {
                model: model.clone(),
                value: *value,
            },
        }));
    }
    Ok(entries)
}
