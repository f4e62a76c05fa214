//! One line of an answers file: `{question_id, text, model_id}`.

use serde_json::Value;

use crate::data::cases::case::case_id::{find_id_in_malformed, json_type, parse_id};
use crate::data::cases::formats::python_json;

/// A parsed answer line.
#[derive(Debug)]
pub(crate) struct AnswerLine {
    /// Id of the question.
    pub(crate) question_id: String,
    /// The answer, possibly empty.
    pub(crate) text: Box<str>,
    /// The model, if the line has one.
    pub(crate) model: Option<String>,
}

/// A malformed answer line, with its readable fields.
#[derive(Debug)]
pub(crate) struct MalformedAnswer {
    /// Id of the question, if readable.
    pub(crate) question_id: Option<String>,
    /// The model, if readable.
    pub(crate) model: Option<String>,
    /// The error message.
    pub(crate) message: String,
}

/// Parses an answer line.
pub(crate) fn parse_line(line: &str) -> Result<AnswerLine, MalformedAnswer> {
    parse_fields(line).map_err(|message| MalformedAnswer {
        question_id: find_id_in_malformed(line, "question_id"),
        model: find_id_in_malformed(line, "model_id"),
        message,
    })
}

/// Describes a line without an answer. `acem3 data answers` writes the reason.
fn no_text(fields: &serde_json::Map<String, Value>) -> String {
    let field = |name: &str| fields.get(name).and_then(Value::as_str);
    match (field("unanswered"), field("message")) {
        (Some(reason), message) => {
            let message = message.and_then(|message| message.lines().next()).unwrap_or("no reason");
            format!("the model gave no answer ({reason}): {message}")
        }
        _ => "field `text` is missing".to_owned(),
    }
}

fn parse_fields(line: &str) -> Result<AnswerLine, String> {
    let value = python_json::parse(line).map_err(|error| {
        let reason = python_json::error_reason(&error);
        format!("malformed JSON at column {}: {reason}", error.column())
    })?;
    let Value::Object(mut fields) = value else {
        return Err(format!("the line is {}, expected an object", json_type(&value)));
    };
    let question_id = fields.get("question_id").ok_or("field `question_id` is missing")?;
    let question_id = parse_id(question_id).ok_or_else(|| {
        let found = match question_id {
            Value::String(_) => "empty",
            other => json_type(other),
        };
        format!("field `question_id` is {found}, expected a number or a non-empty string")
    })?;
    let text = match fields.get_mut("text").map(Value::take) {
        Some(Value::String(text)) => text.into_boxed_str(),
        Some(other) => {
            return Err(format!("field `text` is {}, expected a string", json_type(&other)));
        }
        None => return Err(no_text(&fields)),
    };
    let model = match fields.get_mut("model_id").map(Value::take) {
        Some(Value::String(model)) => Some(model.trim().to_owned()),
        None | Some(Value::Null) => None,
        Some(other) => {
            return Err(format!("field `model_id` is {}, expected a string", json_type(&other)));
        }
    };
    if model.as_deref() == Some("") {
        return Err("field `model_id` is empty, expected the name of a model".into());
    }
    Ok(AnswerLine { question_id, text, model })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_for_no_answer_is_kept() {
        let line = "{\"question_id\": \"q\", \"unanswered\": \"refused\", \
                    \"message\": \"a filter\\nhint: x\", \"model_id\": \"m\"}";
        let error = parse_line(line).unwrap_err();
        assert_eq!(error.message, "the model gave no answer (refused): a filter");
        assert_eq!((error.question_id.as_deref(), error.model.as_deref()), (Some("q"), Some("m")));
        let error = parse_line("{\"question_id\": 1}").unwrap_err();
        assert_eq!(error.message, "field `text` is missing");
    }
}
