//! A JSONL file of cases: one object per line.
//!
//! `{"id", "image", "question", "responses": [{"model", "text"}, ...]}` and optionally
//! `reference`, `labels` and `meta`. Other fields are kept unchanged.

use std::collections::HashSet;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

use crate::data::cases::case::case_id::{find_id_in_malformed, json_type, parse_id};
use crate::data::cases::case::case_labels;
use crate::data::cases::case::{
    Case, ImageSource, InputProblem, LOCAL_ONLY, ProblemScope, Response,
};
use crate::data::cases::draft::{Draft, Drafts};
use crate::data::cases::formats::lines::Lines;
use crate::data::cases::formats::python_json;
use crate::data::cases::misspelt_fields::check_local_only_spelling;
use crate::support::files::regular_file;

/// Reads the cases of a file. Image paths are relative to the file.
pub(crate) fn read_drafts(path: &Path) -> Result<Drafts> {
    let opened = open_file(path)?;
    let file: Arc<Path> = path.into();
    Ok(Box::new(Lines::new(BufReader::new(opened)).map(move |(line, text)| {
        let parsed = text.map_err(LineError::from).and_then(|text| parse_case(&text, &file));
        match parsed {
            Ok((case, field_problems)) => {
                let keys = vec![case.id.clone()];
                Ok(Draft {
                    case: Case { line, ..case },
                    keys,
                    file: Arc::clone(&file),
                    field_problems,
                    is_selected: true,
                })
            }
            Err(error) => Err(InputProblem {
                scope: ProblemScope::Case(error.models),
                ..InputProblem::parse_error(&file, line, error.id, error.message)
            }),
        }
    })))
}

/// Returns the number of non-blank lines.
pub(crate) fn count_lines(path: &Path) -> Result<u64> {
    Ok(Lines::new(BufReader::new(open_file(path)?)).count() as u64)
}

fn open_file(path: &Path) -> Result<File> {
    regular_file::open(path).with_context(|| {
        format!(
            "cases file {} cannot be opened\nhint: check the path and its permissions",
            path.display()
        )
    })
}

/// The error of a malformed line, with the readable fields.
#[derive(Debug, Default)]
struct LineError {
    id: Option<String>,
    models: Vec<String>,
    message: String,
}

impl From<String> for LineError {
    fn from(message: String) -> Self {
        Self { message, ..Self::default() }
    }
}

/// Parses a case. Also returns the problems in fields that the judge does not see.
fn parse_case(line: &str, file: &Path) -> Result<(Case, Vec<String>), LineError> {
    let value = python_json::parse(line).map_err(|e| LineError {
        id: find_id_in_malformed(line, "id"),
        ..LineError::from(malformed_line_message(&e))
    })?;
    let Value::Object(fields) = value else {
        let message = format!("the line is {}, expected an object", json_type(&value));
        return Err(message.into());
    };
    let models = known_models(fields.get("responses"));
    let line_error = |id: Option<&String>, message: String| LineError {
        id: id.cloned(),
        models: models.clone(),
        message,
    };
    let id = match fields.get("id") {
        None => return Err(line_error(None, "field `id` is missing".into())),
        Some(id) => parse_id(id).ok_or_else(|| {
            let found = match id {
                Value::String(_) => "empty",
                other => json_type(other),
            };
            let message = format!("field `id` is {found}, expected a number or a non-empty string");
            line_error(None, message)
        })?,
    };
    let has_question = fields.contains_key("question");
    let mut case = Case {
        id,
        image: None,
        question: String::new(),
        responses: Vec::new(),
        reference: None,
        labels: None,
        meta: Map::new(),
        extra: Map::new(),
        line: 0,
    };
    let filled = if has_question { Ok(()) } else { Err("field `question` is missing".to_owned()) };
    let mut field_problems = Vec::new();
    let filled = filled.and_then(|()| {
        let mut fields = fields.into_iter();
        fields.try_for_each(|(name, value)| match fill_optional_field(&mut case, &name, value) {
            Ok(None) => Ok(()),
            Ok(Some(value)) => fill_field(&mut case, name, value, file),
            Err(message) => {
                field_problems.push(message);
                Ok(())
            }
        })
    });
    match filled {
        Ok(()) => Ok((case, field_problems)),
        Err(message) => Err(line_error(Some(&case.id), message)),
    }
}

/// Returns the models of a possibly malformed case.
fn known_models(responses: Option<&Value>) -> Vec<String> {
    let responses = responses.and_then(Value::as_array).into_iter().flatten();
    let models = responses.filter_map(|response| response.get("model").and_then(Value::as_str));
    let mut known = HashSet::new();
    let models = models.filter(|model| !model.trim().is_empty() && known.insert(*model));
    models.map(ToOwned::to_owned).collect()
}

/// Stores `labels` or `meta`, which the judge does not see. Returns the value of any other field.
fn fill_optional_field(case: &mut Case, name: &str, value: Value) -> Result<Option<Value>, String> {
    match (name, value) {
        ("labels" | "meta", Value::Null) => Ok(None),
        ("labels", value) => {
            let labels = case_labels::parse(value)
                .map_err(|reason| case_labels::labels_ignored_message(&reason))?;
            case.labels = Some(labels);
            Ok(None)
        }
        ("meta", Value::Object(meta)) => {
            case.meta = meta;
            Ok(None)
        }
        ("meta", other) => Err(format!(
            "field `meta` is {}, expected an object\nhint: the case is judged without it",
            json_type(&other)
        )),
        (_, value) => Ok(Some(value)),
    }
}

/// Returns the message for malformed JSON, without the line number.
fn malformed_line_message(error: &serde_json::Error) -> String {
    let reason = python_json::error_reason(error);
    format!(
        "malformed JSON at column {}: {reason}\nhint: each line must be a JSON object with the \
         fields `id`, `image`, `question` and `responses`",
        error.column()
    )
}

fn fill_field(case: &mut Case, name: String, value: Value, file: &Path) -> Result<(), String> {
    match name.as_str() {
        "id" => {}
        "question" => case.question = expect_string(value, &name)?,
        "image" | "reference" | "responses" if value.is_null() => {}
        "image" => case.image = Some(image_source(&expect_string(value, &name)?, file)?),
        "reference" => case.reference = Some(expect_string(value, &name)?),
        "responses" => case.responses = parse_responses(value)?,
        // A value that is not understood must not send the case away.
        LOCAL_ONLY if !value.is_boolean() => {
            return Err(format!("field `{name}` is {}, expected true or false", json_type(&value)));
        }
        _ => {
            check_local_only_spelling(&name)?;
            case.extra.insert(name, value);
        }
    }
    Ok(())
}

/// Returns the source of an image. Its path is relative to the file.
fn image_source(name: &str, file: &Path) -> Result<ImageSource, String> {
    if name.trim().is_empty() {
        return Err("field `image` is empty: leave it out for a case without an image".into());
    }
    let folder = file.parent().unwrap_or(Path::new(""));
    Ok(ImageSource::File(folder.join(name)))
}

fn expect_string(value: Value, name: &str) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(format!("field `{name}` is {}, expected a string", json_type(&other))),
    }
}

fn parse_responses(value: Value) -> Result<Vec<Response>, String> {
    let Value::Array(items) = value else {
        let found = json_type(&value);
        return Err(format!("field `responses` is {found}, expected [{{model, text}}, ...]"));
    };
    items.into_iter().enumerate().map(|(index, item)| parse_response(index + 1, item)).collect()
}

fn parse_response(number: usize, value: Value) -> Result<Response, String> {
    let Value::Object(mut fields) = value else {
        return Err(format!(
            "response {number} is {}, expected {{model, text}}",
            json_type(&value)
        ));
    };
    let mut take_string = |name: &str| match fields.get_mut(name).map(Value::take) {
        Some(Value::String(text)) => Ok(text),
        // A response without text affects only this response.
        _ if name == "text" => Ok(String::new()),
        Some(other) => Err(format!(
            "`{name}` of response {number} is {}, expected a string",
            json_type(&other)
        )),
        None => Err(format!("response {number} has no `{name}`")),
    };
    Ok(Response { model: take_string("model")?, text: take_string("text")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "set/cases.jsonl";

    fn parse_failure(line: &str) -> (Option<String>, String) {
        let error = parse_case(line, Path::new(FILE)).unwrap_err();
        (error.id, error.message)
    }

    fn case(line: &str) -> Case {
        let (case, field_problems) = parse_case(line, Path::new(FILE)).unwrap();
        assert_eq!(field_problems, [""; 0]);
        case
    }

    #[test]
    fn all_fields_are_read_and_unknown_fields_kept() {
        let line = r#"{"id": 7, "image": "images/a.png", "question": "Is it?", "zeta": 1,
            "responses": [{"model": "a", "text": "yes", "tokens": 3}, {"model": "b", "text": "no"}],
            "reference": "yes", "labels": {"final": [5, 1]}, "meta": {"organ": "lung"}, "alpha": []}"#;
        let case = case(line);
        assert_eq!(case.id, "7");
        assert_eq!(case.image, Some(ImageSource::File("set/images/a.png".into())));
        assert_eq!(case.responses[1], Response { model: "b".into(), text: "no".into() });
        assert_eq!(case.reference.as_deref(), Some("yes"));
        assert_eq!(case.labels.unwrap().final_scores, Some(vec![5.0, 1.0]));
        assert_eq!(case.meta["organ"], "lung");
        assert_eq!(case.extra.keys().collect::<Vec<_>>(), ["zeta", "alpha"]);
    }

    #[test]
    fn null_and_absent_are_the_same() {
        let line = r#"{"id": "x", "image": null, "question": "Is it?", "reference": null}"#;
        let bare = case(line);
        assert_eq!((bare.image, bare.reference, bare.labels), (None, None, None));
        let outside = r#"{"id": "x", "image": "/far/../a.png", "question": "Is it?"}"#;
        let case = case(outside);
        assert_eq!(case.image, Some(ImageSource::File("/far/../a.png".into())));
    }

    #[test]
    fn problems_have_line_and_message() {
        assert_eq!(parse_failure("[1]").0, None);
        assert_eq!(parse_failure(r#"{"id": "k", "question"#).0.as_deref(), Some("k"));
        let check_failure = |line: &str, part: &str| {
            let (id, message) = parse_failure(line);
            assert!(message.contains(part), "{message}");
            id
        };
        assert_eq!(check_failure(r#"{"question": "q"}"#, "`id` is missing"), None);
        assert_eq!(check_failure(r#"{"id": [], "question": "q"}"#, "an array"), None);
        assert_eq!(check_failure(r#"{"id": 1}"#, "`question` is missing").as_deref(), Some("1"));
        check_failure(r#"{"id": 1, "question": 2}"#, "`question` is a number");
        check_failure(r#"{"id": 1, "question": "q", "image": " "}"#, "`image` is empty");
        check_failure(r#"{"id": 1, "question": "q", "responses": "r"}"#, "`responses` is a string");
        check_failure(
            r#"{"id": 1, "question": "q", "responses": ["r"]}"#,
            "response 1 is a string",
        );
        check_failure(r#"{"id": 1, "question": "q", "responses": [{"text": "t"}]}"#, "no `model`");
        check_failure(
            r#"{"id": 1, "question": "q", "responses": [{"model": 1}]}"#,
            "`model` of response 1",
        );
        check_failure(r#"{"id": 1, "question": "\ud8"}"#, "malformed JSON");
    }

    #[test]
    fn malformed_optional_field_affects_no_verdict() {
        let line = r#"{"id": 1, "question": "q", "labels": {"x": 1}, "meta": 1,
            "responses": [{"model": "a", "text": 4}, {"model": "b", "text": "no"}]}"#;
        let (case, field_problems) = parse_case(line, Path::new(FILE)).unwrap();
        assert!(field_problems[0].contains("unknown name `x`"), "{field_problems:?}");
        assert!(field_problems[1].contains("`meta` is a number"), "{field_problems:?}");
        assert_eq!(case.responses[0].text, "");
        assert_eq!((case.labels, case.meta.len()), (None, 0));
    }

    #[test]
    fn malformed_line_names_its_models() {
        let line = r#"{"id": 1, "question": 2, "responses": [{"model": "a"}, {"model": "b"}, 3]}"#;
        let error = parse_case(line, Path::new(FILE)).unwrap_err();
        assert_eq!(error.models, ["a", "b"]);
    }
}
