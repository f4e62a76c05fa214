//! Accuracy of models by subgroup, such as the modality or the type of question.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::{Map, Value};

use super::graded_run::GradedResponse;
use super::model_accuracy::{estimate_proportion, indicator};
use crate::analysis::verdicts::{meta_field, meta_fields_hint, subgroup_fields};
use crate::statistics::{Bootstrap, Estimate};

/// The accuracy of all models in one subgroup.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubgroupAccuracy {
    /// Name of the field that defines the subgroups.
    pub by: String,
    /// Value of the field in this subgroup.
    pub value: String,
    /// Number of responses in this subgroup.
    pub responses: usize,
    /// The models that have responses in this subgroup, in alphabetical order.
    pub models: Vec<SubgroupModelAccuracy>,
}

/// The accuracy of one model in a subgroup.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubgroupModelAccuracy {
    /// The model.
    pub model: String,
    /// Proportion of its responses that are judged correct, with an interval clustered by image.
    pub accuracy: Estimate,
}

/// Computes the accuracy in the subgroups of known data set fields, and of the requested fields.
///
/// # Errors
///
/// No case has a requested field.
pub fn subgroup_accuracies(
    responses: &[GradedResponse],
    group_by: &[String],
    bootstrap: Bootstrap,
) -> Result<Vec<SubgroupAccuracy>> {
    let metas: Vec<&Map<String, Value>> = responses.iter().map(|r| &r.meta).collect();
    let mut fields = subgroup_fields(&metas);
    for field in group_by {
        if !metas.iter().any(|meta| meta_field(meta, field).is_some()) {
            bail!("--group-by {field}: no case has this field\n{}", meta_fields_hint(&metas));
        }
        if !fields.iter().any(|(_, known)| known == field) {
            fields.push((field.clone(), field.clone()));
        }
    }
    let mut groups = Vec::new();
    for (by, field) in fields {
        let mut values: BTreeMap<String, Vec<&GradedResponse>> = BTreeMap::new();
        for response in responses {
            if let Some(value) = meta_field(&response.meta, &field) {
                values.entry(value).or_default().push(response);
            }
        }
        groups.extend(values.into_iter().map(|(value, members)| SubgroupAccuracy {
            by: by.clone(),
            value,
            responses: members.len(),
            models: model_accuracies(&members, bootstrap),
        }));
    }
    Ok(groups)
}

fn model_accuracies(
    members: &[&GradedResponse],
    bootstrap: Bootstrap,
) -> Vec<SubgroupModelAccuracy> {
    let names: BTreeSet<&str> = members.iter().map(|r| r.model.as_str()).collect();
    let accuracy = |name: &str| {
        let of_model = members.iter().filter(|r| r.model == name);
        let graded =
            of_model.filter_map(|r| Some((r.cluster.as_str(), indicator(r.is_correct()?))));
        estimate_proportion(&graded.collect::<Vec<_>>(), bootstrap)
    };
    names
        .into_iter()
        .map(|name| SubgroupModelAccuracy { model: name.to_owned(), accuracy: accuracy(name) })
        .collect()
}
