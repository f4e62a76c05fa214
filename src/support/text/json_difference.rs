//! Describes how two JSON values differ.

use std::collections::BTreeSet;

use serde_json::Value;

/// Maximum number of characters of a value in a description.
const MAX_VALUE: usize = 60;

/// Returns a line for each field with different values, such as `stages.sft.rate was 0.1, is 0.2`. The
/// elements of a list are named by their field `name`, or by their number from 1.
pub(crate) fn describe_json_differences(old: &Value, new: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    compare("", old, new, &mut differences);
    differences
}

fn compare(path: &str, old: &Value, new: &Value, differences: &mut Vec<String>) {
    if old == new {
        return;
    }
    let (old_fields, new_fields) = (fields(old), fields(new));
    if let (Some(old_fields), Some(new_fields)) = (old_fields, new_fields) {
        let names: BTreeSet<&String> =
            old_fields.iter().chain(&new_fields).map(|(name, _)| name).collect();
        for name in names {
            let value = |fields: &[(String, &Value)]| {
                let found = fields.iter().find(|(other, _)| other == name);
                found.map_or(Value::Null, |(_, value)| (*value).clone())
            };
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            compare(&path, &value(&old_fields), &value(&new_fields), differences);
        }
        return;
    }
    differences.push(format!("{path} was {}, is {}", describe(old), describe(new)));
}

/// Returns the fields of an object, or the named elements of a list of objects.
fn fields(value: &Value) -> Option<Vec<(String, &Value)>> {
    match value {
        Value::Object(fields) => {
            Some(fields.iter().map(|(name, value)| (name.clone(), value)).collect())
        }
        Value::Array(items) if items.iter().all(Value::is_object) && !items.is_empty() => {
            let name = |(i, item): (usize, &Value)| match item.get("name").and_then(Value::as_str) {
                Some(name) => name.to_owned(),
                None => (i + 1).to_string(),
            };
            Some(items.iter().enumerate().map(name).zip(items).collect())
        }
        _ => None,
    }
}

fn describe(value: &Value) -> String {
    let text = match value {
        Value::Null => "not set".to_owned(),
        value => value.to_string(),
    };
    if text.chars().count() <= MAX_VALUE {
        return text;
    }
    text.chars().take(MAX_VALUE).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_name_fields_and_stages() {
        let old = json!({"seed": 1, "stages": [{"name": "sft", "rate": 0.1}], "list": [1, 2]});
        let new = json!({"seed": 2, "stages": [{"name": "sft", "rate": 0.2}], "list": [1, 2],
                         "data": {"a": 1}});
        assert_eq!(
            describe_json_differences(&old, &new),
            [
                r#"data was not set, is {"a":1}"#,
                "seed was 1, is 2",
                "stages.sft.rate was 0.1, is 0.2"
            ]
        );
        assert!(describe_json_differences(&old, &old).is_empty());
        let renamed = json!({"seed": 1, "stages": [{"name": "dpo"}], "list": [1]});
        let found = describe_json_differences(&old, &renamed);
        assert_eq!(
            found,
            [
                "list was [1,2], is [1]",
                r#"stages.dpo was not set, is {"name":"dpo"}"#,
                r#"stages.sft was {"name":"sft","rate":0.1}, is not set"#,
            ]
        );
    }
}
