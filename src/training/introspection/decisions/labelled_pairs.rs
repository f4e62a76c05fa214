//! Labelled final scores of the pairs of the training cases.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::data::cases::{self, SourceSpec};
use crate::judging::run::pairs::select_pairs;
use crate::training::introspection::judged::review::PairId;

/// Returns the labels of these pairs; `None` for a pair without labels. Pairs that the cases do not
/// have are absent.
///
/// # Errors
/// If the cases cannot be opened.
pub(super) fn read_labels(
    spec: &SourceSpec,
    pairs: &BTreeSet<PairId>,
) -> Result<BTreeMap<PairId, Option<[f64; 2]>>> {
    let mut found = BTreeMap::new();
    for case in cases::open(&spec.path, &spec.options)?.flatten() {
        let labels = case.labels.as_ref().and_then(|labels| labels.final_scores.as_deref());
        for indices in select_pairs(&case, None).unwrap_or_default() {
            let models = indices.map(|i| case.responses.get(i).map(|r| r.model.clone()));
            let id = (case.id.clone(), models.map(Option::unwrap_or_default));
            if pairs.contains(&id) {
                let label = |i: usize| labels.and_then(|labels| labels.get(i).copied());
                let labels = indices.map(label);
                found.insert(id, labels[0].zip(labels[1]).map(<[f64; 2]>::from));
            }
        }
    }
    Ok(found)
}
