//! Subgroup fields: case fields that group verdicts.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::pair_verdict::PairVerdict;

/// Subgroup fields of known data sets: the display name, and the names of the field in different
/// sets.
const SUBGROUP_FIELDS: [(&str, &[&str]); 6] = [
    ("data set", &["dataset", "data_set"]),
    ("question type", &["answer_type", "question_type", "content_type", "question"]),
    ("modality", &["modality", "kind"]),
    ("organ", &["organ", "location", "image_organ"]),
    ("language", &["lang", "language", "q_lang"]),
    ("scenario", &["scenario"]),
];

/// A field with more values than this makes no subgroups.
const MAX_VALUES: usize = 40;

/// Finds the subgroup fields of cases in their `meta`, each with its display name. A field makes
/// subgroups if it has at least two and at most 40 values.
pub fn subgroup_fields(metas: &[&Map<String, Value>]) -> Vec<(String, String)> {
    let mut subgroup_fields = Vec::new();
    for (name, fields) in SUBGROUP_FIELDS {
        let usable: Vec<&str> =
            fields.iter().copied().filter(|field| makes_subgroups(metas, field)).collect();
        for field in &usable {
            let name = if usable.len() > 1 { format!("{name} ({field})") } else { name.to_owned() };
            subgroup_fields.push((name, (*field).to_owned()));
        }
    }
    subgroup_fields
}

/// Returns a hint that lists the fields of `meta`, for a flag with an unknown field.
pub fn meta_fields_hint(metas: &[&Map<String, Value>]) -> String {
    let fields = metas.iter().flat_map(|meta| meta.keys()).map(String::as_str);
    let fields: Vec<&str> = fields.collect::<BTreeSet<&str>>().into_iter().collect();
    if fields.is_empty() {
        return "hint: omit the flag; the cases have no fields in `meta`".to_owned();
    }
    format!("hint: fields in `meta`: {}", fields.join(", "))
}

fn makes_subgroups(metas: &[&Map<String, Value>], field: &str) -> bool {
    let mut values: Vec<String> = Vec::new();
    for value in metas.iter().filter_map(|meta| meta_field(meta, field)) {
        if !values.contains(&value) {
            values.push(value);
        }
        if values.len() > MAX_VALUES {
            return false;
        }
    }
    values.len() > 1
}

impl PairVerdict {
    /// Returns a field of the case as text; `None` if it is missing, empty, or not a single value.
    pub fn field(&self, name: &str) -> Option<String> {
        meta_field(&self.meta, name)
    }
}

/// Returns a field of `meta` as text; `None` if it is missing, empty, or not a single value.
pub fn meta_field(meta: &Map<String, Value>, name: &str) -> Option<String> {
    match meta.get(name)? {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// Returns the `meta` of the case of each verdict.
pub fn metas_of(verdicts: &[PairVerdict]) -> Vec<&Map<String, Value>> {
    verdicts.iter().map(|verdict| &verdict.meta).collect()
}
