//! Mean scores of models by subgroup.

use std::collections::BTreeMap;

use serde::Serialize;

use super::scores::{ModelScores, scores};
use crate::analysis::verdicts::{PairVerdict, subgroup_fields};
use crate::data::labels::ScoreTarget;
use crate::statistics::Bootstrap;

/// The models' means within a subgroup.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupScores {
    /// What makes the subgroups.
    pub by: String,
    /// What all cases of this one have in common.
    pub value: String,
    /// Its pairs.
    pub pairs: usize,
    /// The models.
    pub models: Vec<ModelScores>,
}

/// The fields that make subgroups: those of data sets, and those asked for.
pub(super) fn fields(verdicts: &[PairVerdict], by: &[String]) -> Vec<(String, String)> {
    let mut fields = subgroup_fields(verdicts);
    for field in by {
        if !fields.iter().any(|(_, known)| known == field) {
            fields.push((field.clone(), field.clone()));
        }
    }
    fields
}

/// Every subgroup's means on one target.
pub(super) fn groups(
    verdicts: &[PairVerdict],
    by: &[String],
    target: ScoreTarget,
    bootstrap: Bootstrap,
) -> Vec<GroupScores> {
    let mut found = Vec::new();
    for (name, field) in fields(verdicts, by) {
        let mut values: BTreeMap<String, Vec<&PairVerdict>> = BTreeMap::new();
        for verdict in verdicts {
            if let Some(value) = verdict.field(&field) {
                values.entry(value).or_default().push(verdict);
            }
        }
        for (value, within) in values {
            found.push(GroupScores {
                by: name.clone(),
                value,
                pairs: within.len(),
                models: scores(within.iter().copied(), &[target], bootstrap),
            });
        }
    }
    found
}
