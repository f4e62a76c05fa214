//! Mean scores of models by subgroup.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::scores::{ModelScores, compute_model_scores};
use crate::analysis::verdicts::{PairVerdict, metas_of, subgroup_fields};
use crate::data::labels::ScoreTarget;
use crate::statistics::Bootstrap;

/// Mean scores of the models in one subgroup.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupScores {
    /// Name of the field that defines the subgroups.
    pub by: String,
    /// Value of the field in this subgroup.
    pub value: String,
    /// Number of pairs in this subgroup.
    pub pairs: usize,
    /// Mean scores by model.
    pub models: Vec<ModelScores>,
}

/// Returns the names and keys of the subgroup fields: data set fields, then the requested fields.
pub(crate) fn group_fields(
    metas: &[&Map<String, Value>],
    group_by: &[String],
) -> Vec<(String, String)> {
    let mut fields = subgroup_fields(metas);
    for field in group_by {
        if !fields.iter().any(|(_, known)| known == field) {
            fields.push((field.clone(), field.clone()));
        }
    }
    fields
}

/// Computes the mean scores of every subgroup on one target.
pub(crate) fn compute_groups(
    verdicts: &[PairVerdict],
    group_by: &[String],
    target: ScoreTarget,
    bootstrap: Bootstrap,
) -> Vec<GroupScores> {
    let mut groups = Vec::new();
    for (name, field) in group_fields(&metas_of(verdicts), group_by) {
        let mut values: BTreeMap<String, Vec<&PairVerdict>> = BTreeMap::new();
        for verdict in verdicts {
            if let Some(value) = verdict.field(&field) {
                values.entry(value).or_default().push(verdict);
            }
        }
        for (value, members) in values {
            groups.push(GroupScores {
                by: name.clone(),
                value,
                pairs: members.len(),
                models: compute_model_scores(members.iter().copied(), &[target], bootstrap),
            });
        }
    }
    groups
}
