//! Normalizes ids: `7`, `7.0` and `" 7 "` in different files mean the same case.

use serde_json::Value;

/// Returns the id in a JSON value; `None` if it is neither a number nor a string.
pub(crate) fn parse_id(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|t| !t.is_empty()),
        Value::Number(number) => Some(match number.as_f64() {
            // Data frames with missing values turn 7 into 7.0.
            Some(float) if !number.is_i64() && !number.is_u64() && float.fract() == 0.0 => {
                format!("{float:.0}")
            }
            _ => number.to_string(),
        }),
        _ => None,
    }
}

/// Returns the id in the field `field` of a malformed JSON line, if it is readable.
pub(crate) fn find_id_in_malformed(line: &str, field: &str) -> Option<String> {
    let (_, rest) = line.split_once(&format!("\"{field}\""))?;
    let rest = rest.trim_start().strip_prefix(':')?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    values.next()?.ok().as_ref().and_then(parse_id)
}

/// Returns the type of a JSON value with an article, for messages.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_and_strings_are_equal_ids() {
        let ids = [json!(7), json!(7.0), json!(" 7 "), json!("7")];
        assert!(ids.iter().all(|v| parse_id(v).as_deref() == Some("7")));
        assert_eq!(parse_id(&json!(7.5)).as_deref(), Some("7.5"));
        assert_eq!(parse_id(&json!("")), None);
        assert_eq!(parse_id(&json!(null)), None);
        assert_eq!(parse_id(&json!([1])), None);
    }

    #[test]
    fn id_in_a_torn_line_is_found() {
        assert_eq!(find_id_in_malformed(r#"{"id": "a1", "ques"#, "id").as_deref(), Some("a1"));
        assert_eq!(find_id_in_malformed(r#"{"id":12, "ques"#, "id").as_deref(), Some("12"));
        assert_eq!(find_id_in_malformed(r#"{"id": "a1"#, "id"), None);
        assert_eq!(find_id_in_malformed("no", "id"), None);
    }
}
