//! Ids as text: `7`, `7.0` and `" 7 "` in different files mean the same case.

use serde_json::Value;

/// The id a JSON value names; `None` if it is neither a number nor a text.
pub(crate) fn id_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|t| !t.is_empty()),
        Value::Number(number) => Some(match number.as_f64() {
            // Tables that passed through a data frame with gaps come back with 7.0 for 7.
            Some(float) if !number.is_i64() && !number.is_u64() && float.fract() == 0.0 => {
                format!("{float:.0}")
            }
            _ => number.to_string(),
        }),
        _ => None,
    }
}

/// The id in a line that is not JSON as a whole, where it can still be made out.
pub(super) fn id_in_broken(line: &str, field: &str) -> Option<String> {
    let (_, rest) = line.split_once(&format!("\"{field}\""))?;
    let rest = rest.trim_start().strip_prefix(':')?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    values.next()?.ok().as_ref().and_then(id_text)
}

/// What a JSON value is, for messages.
pub(crate) fn kind(value: &Value) -> &'static str {
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
    fn numbers_and_texts_meet() {
        let ids = [json!(7), json!(7.0), json!(" 7 "), json!("7")];
        assert!(ids.iter().all(|v| id_text(v).as_deref() == Some("7")));
        assert_eq!(id_text(&json!(7.5)).as_deref(), Some("7.5"));
        assert_eq!(id_text(&json!("")), None);
        assert_eq!(id_text(&json!(null)), None);
        assert_eq!(id_text(&json!([1])), None);
    }

    #[test]
    fn finds_an_id_in_a_torn_line() {
        assert_eq!(
            id_in_broken(r#"{"id": "a1", "ques"#, "id").as_deref(),
            Some("a1")
        );
        assert_eq!(
            id_in_broken(r#"{"id":12, "ques"#, "id").as_deref(),
            Some("12")
        );
        assert_eq!(id_in_broken(r#"{"id": "a1"#, "id"), None);
        assert_eq!(id_in_broken("no", "id"), None);
    }
}
