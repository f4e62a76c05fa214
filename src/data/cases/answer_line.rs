//! One line of an answers file: `{question_id, text, model_id}`.

use serde_json::Value;

use super::python_json;
use crate::data::cases::case_id::{id_in_broken, id_text, kind};

/// A parsed answer line.
#[derive(Debug)]
pub(super) struct AnswerLine {
    /// Id of the question.
    pub(super) question: String,
    /// The answer; may be empty.
    pub(super) text: Box<str>,
    /// The model, if the line has one.
    pub(super) model: Option<String>,
}

/// A malformed line, with the fields that could be read.
#[derive(Debug)]
pub(super) struct MalformedAnswer {
    /// Id of the question.
    pub(super) question: Option<String>,
    /// The model, if readable.
    pub(super) model: Option<String>,
    /// The error message.
    pub(super) fault: String,
}

/// Parses a line.
pub(super) fn read(line: &str) -> Result<AnswerLine, MalformedAnswer> {
    parse(line).map_err(|fault| MalformedAnswer {
        question: id_in_broken(line, "question_id"),
        model: id_in_broken(line, "model_id"),
        fault,
    })
}

fn parse(line: &str) -> Result<AnswerLine, String> {
    let value = python_json::read(line).map_err(|error| {
        let reason = python_json::reason(&error);
        format!("broken JSON in column {}: {reason}", error.column())
    })?;
    let Value::Object(mut fields) = value else {
        return Err(format!("the line is {}, expected an object", kind(&value)));
    };
    let question = fields
        .get("question_id")
        .ok_or("field `question_id` is missing")?;
    let question = id_text(question).ok_or_else(|| {
        let found = match question {
            Value::String(_) => "empty",
            other => kind(other),
        };
        format!("field `question_id` is {found}, expected a number or a string")
    })?;
    let text = match fields.get_mut("text").map(Value::take) {
        Some(Value::String(text)) => text.into_boxed_str(),
        Some(other) => {
            return Err(format!(
                "field `text` is {}, expected a string",
                kind(&other)
            ));
        }
        None => return Err("field `text` is missing".into()),
    };
    let model = match fields.get_mut("model_id").map(Value::take) {
        Some(Value::String(model)) => Some(model.trim().to_owned()),
        None | Some(Value::Null) => None,
        Some(other) => {
            return Err(format!(
                "field `model_id` is {}, expected a string",
                kind(&other)
            ));
        }
    };
    if model.as_deref() == Some("") {
        return Err("field `model_id` is empty, expected the name of a model".into());
    }
    Ok(AnswerLine {
        question,
        text,
        model,
    })
}
