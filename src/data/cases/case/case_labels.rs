//! Labels of a case: `{"final": [a, b], "aspects": {...}, "criteria": {...}}`.

use std::collections::BTreeMap;

use acem3_experts::{Aspect, Criterion};
use serde_json::{Map, Value};

use crate::data::cases::case::CaseLabels;
use crate::data::cases::case::case_id::json_type;

/// Parses labels. Unknown names are errors, so that a misspelt criterion is not ignored.
pub(crate) fn parse(value: Value) -> Result<CaseLabels, String> {
    let mut labels = CaseLabels::default();
    for (key, value) in expect_object(value, "labels")? {
        match key.as_str() {
            "final" if value.is_null() => {}
            "final" => labels.final_scores = Some(parse_scores(&value, "labels.final")?),
            "aspects" => {
                labels.aspects = parse_group(value, "aspects", &Aspect::known(), Aspect::key)?;
            }
            "criteria" => {
                labels.criteria =
                    parse_group(value, "criteria", &Criterion::known(), Criterion::key)?;
            }
            _ => {
                return Err(format!(
                    "`labels` has the unknown name `{key}`, expected final, aspects or criteria"
                ));
            }
        }
    }
    Ok(labels)
}

/// Returns the message for malformed labels, which are ignored.
pub(crate) fn labels_ignored_message(reason: &str) -> String {
    format!("{reason}\nhint: the case is judged without its labels; fix them and run again")
}

/// Checks that there is one score per response.
pub(crate) fn check_score_counts(labels: &CaseLabels, responses: usize) -> Result<(), String> {
    let final_scores = labels.final_scores.iter().map(|s| ("final", s));
    let aspects = labels.aspects.iter().map(|(a, s)| (a.key(), s));
    let criteria = labels.criteria.iter().map(|(c, s)| (c.key(), s));
    match final_scores.chain(aspects).chain(criteria).find(|(_, s)| s.len() != responses) {
        None => Ok(()),
        Some((name, scores)) => Err(format!(
            "label `{name}` has {} scores, expected {responses}: one per response",
            scores.len()
        )),
    }
}

/// Removes the scores of removed responses. `kept` has one entry per response.
pub(crate) fn retain_responses(labels: &mut CaseLabels, kept: &[bool]) {
    let lists = labels.final_scores.iter_mut();
    let lists = lists.chain(labels.aspects.values_mut());
    for scores in lists.chain(labels.criteria.values_mut()) {
        let mut kept = kept.iter();
        scores.retain(|_| kept.next().copied().unwrap_or(true));
    }
}

fn expect_object(value: Value, name: &str) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(map) => Ok(map),
        other => Err(format!("`{name}` is {}, expected an object", json_type(&other))),
    }
}

fn parse_group<K: Ord + Copy>(
    value: Value,
    name: &str,
    all: &[K],
    key_of: impl Fn(K) -> &'static str,
) -> Result<BTreeMap<K, Vec<f64>>, String> {
    let mut group = BTreeMap::new();
    for (key, value) in expect_object(value, &format!("labels.{name}"))? {
        let known = all.iter().copied().find(|k| key_of(*k) == key).ok_or_else(|| {
            let names: Vec<_> = all.iter().map(|k| key_of(*k)).collect();
            let names = names.join(", ");
            format!("`labels.{name}` has the unknown name `{key}`, expected one of {names}")
        })?;
        group.insert(known, parse_scores(&value, &format!("labels.{name}.{key}"))?);
    }
    Ok(group)
}

fn parse_scores(value: &Value, name: &str) -> Result<Vec<f64>, String> {
    let Value::Array(items) = value else {
        return Err(format!("`{name}` is {}, expected an array of scores", json_type(value)));
    };
    let score = |item: &Value| match item.as_f64() {
        Some(number) if (0.0..=5.0).contains(&number) => Ok(number),
        Some(_) => Err(format!("`{name}` has the score {item}, expected 0 to 5")),
        None => Err(format!("`{name}` has {} in it, expected scores 0 to 5", json_type(item))),
    };
    items.iter().map(score).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_three_groups_are_read() {
        let labels = parse(json!({
            "final": [5, 0.5],
            "aspects": {"medical_knowledge": [4, 1]},
            "criteria": {"factual_accuracy": [5, 0], "tone_and_empathy": [3, 3]},
        }))
        .unwrap();
        assert_eq!(labels.final_scores, Some(vec![5.0, 0.5]));
        assert_eq!(labels.aspects[&Aspect::MEDICAL_KNOWLEDGE], [4.0, 1.0]);
        assert_eq!(labels.criteria.len(), 2);
        assert!(check_score_counts(&labels, 2).is_ok());
        assert!(check_score_counts(&labels, 3).unwrap_err().contains("final"));
    }

    #[test]
    fn unknown_names_are_errors() {
        let parse_error_of = |v| parse(v).unwrap_err();
        assert!(parse_error_of(json!({"finale": [1, 2]})).contains("finale"));
        assert!(
            parse_error_of(json!({"criteria": {"exactness": [1, 2]}})).contains("factual_accuracy")
        );
        assert!(parse_error_of(json!({"final": [1, 5.5]})).contains("5.5"));
        assert!(parse_error_of(json!({"final": [1, -1]})).contains("-1"));
        assert!(parse_error_of(json!({"final": [1, null]})).contains("null"));
        assert!(parse_error_of(json!({"final": 3})).contains("a number"));
        assert!(parse_error_of(json!([1, 2])).contains("an array"));
    }
}
