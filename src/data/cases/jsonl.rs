//! A JSONL file of cases: one object per line.
//!
//! `{"id", "image", "question", "responses": [{"model", "text"}, ...]}` and optionally
//! `reference`, `labels` and `meta`. Other fields are kept unchanged.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

use super::case::{Case, ImageSource, InputProblem, ProblemScope, Response};
use super::lines::Lines;
use super::python_json;
use crate::data::cases::case_assembler::{Draft, Drafts};
use crate::data::cases::case_id::{id_in_broken, id_text, kind};
use crate::data::cases::case_labels;
use crate::support::files::regular_file;

/// Reads the cases of a file. Image paths are relative to it.
pub(super) fn drafts(path: &Path) -> Result<Drafts> {
    let opened = open(path)?;
    let file: Arc<Path> = path.into();
    Ok(Box::new(Lines::new(BufReader::new(opened)).map(
        move |(line, text)| {
            let parsed = text
                .map_err(LineError::from)
                .and_then(|text| parse(&text, &file));
            match parsed {
                Ok((case, faults)) => {
                    let keys = vec![case.id.clone()];
                    Ok(Draft {
                        case: Case { line, ..case },
                        keys,
                        file: Arc::clone(&file),
                        faults,
                        wanted: true,
                    })
                }
                Err(fault) => Err(InputProblem {
                    loss: ProblemScope::Case(fault.models),
                    ..InputProblem::parse(&file, line, fault.id, fault.message)
                }),
            }
        },
    )))
}

/// Number of non-blank lines.
pub(super) fn count(path: &Path) -> Result<u64> {
    Ok(Lines::new(BufReader::new(open(path)?)).count() as u64)
}

fn open(path: &Path) -> Result<File> {
    regular_file::open(path).with_context(|| {
        format!(
            "cases file {} cannot be opened\nhint: check the path and its permissions",
            path.display()
        )
    })
}

/// A malformed line, with the fields that could be read.
#[derive(Debug, Default)]
struct LineError {
    id: Option<String>,
    models: Vec<String>,
    message: String,
}

impl From<String> for LineError {
    fn from(message: String) -> Self {
        Self {
            message,
            ..Self::default()
        }
    }
}

/// Parses a case, and returns problems in fields that no verdict needs.
fn parse(line: &str, file: &Path) -> Result<(Case, Vec<String>), LineError> {
    let value = python_json::read(line).map_err(|e| LineError {
        id: id_in_broken(line, "id"),
        ..LineError::from(broken(&e))
    })?;
    let Value::Object(fields) = value else {
        let message = format!("the line is {}, expected an object", kind(&value));
        return Err(message.into());
    };
    let models = models(fields.get("responses"));
    let fault = |id: Option<&String>, message: String| LineError {
        id: id.cloned(),
        models: models.clone(),
        message,
    };
    let id = match fields.get("id") {
        None => return Err(fault(None, "field `id` is missing".into())),
        Some(id) => id_text(id).ok_or_else(|| {
            let found = match id {
                Value::String(_) => "empty",
                other => kind(other),
            };
            let message = format!("field `id` is {found}, expected a number or a text");
            fault(None, message)
        })?,
    };
    let asked = fields.contains_key("question");
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
    let filled = if asked {
        Ok(())
    } else {
        Err("field `question` is missing".to_owned())
    };
    let mut spared = Vec::new();
    let filled = filled.and_then(|()| {
        let mut fields = fields.into_iter();
        fields.try_for_each(|(name, value)| match spare(&mut case, &name, value) {
            Ok(None) => Ok(()),
            Ok(Some(value)) => fill(&mut case, name, value, file),
            Err(fault) => {
                spared.push(fault);
                Ok(())
            }
        })
    });
    match filled {
        Ok(()) => Ok((case, spared)),
        Err(message) => Err(fault(Some(&case.id), message)),
    }
}

/// The models of a possibly malformed case.
fn models(responses: Option<&Value>) -> Vec<String> {
    let mut models: Vec<String> = Vec::new();
    for response in responses.and_then(Value::as_array).into_iter().flatten() {
        let model = response.get("model").and_then(Value::as_str);
        if let Some(model) = model.filter(|m| !m.trim().is_empty())
            && !models.iter().any(|known| known == model)
        {
            models.push(model.to_owned());
        }
    }
    models
}

/// Stores a field that the judge does not see; its problems affect no verdict. Returns any other field.
fn spare(case: &mut Case, name: &str, value: Value) -> Result<Option<Value>, String> {
    match (name, value) {
        ("labels" | "meta", Value::Null) => Ok(None),
        ("labels", value) => {
            let labels =
                case_labels::parse(value).map_err(|fault| case_labels::left_out(&fault))?;
            case.labels = Some(labels);
            Ok(None)
        }
        ("meta", Value::Object(meta)) => {
            case.meta = meta;
            Ok(None)
        }
        ("meta", other) => Err(format!(
            "field `meta` is {}, expected an object\nhint: the case is judged without it",
            kind(&other)
        )),
        (_, value) => Ok(Some(value)),
    }
}

/// Message for malformed JSON, without the line number.
fn broken(error: &serde_json::Error) -> String {
    let reason = python_json::reason(error);
    format!(
        "malformed JSON at column {}: {reason}\nhint: each line must be one object, as \
         {{\"id\", \"image\", \"question\", \"responses\"}}",
        error.column()
    )
}

fn fill(case: &mut Case, name: String, value: Value, file: &Path) -> Result<(), String> {
    match name.as_str() {
        "id" => {}
        "question" => case.question = text(value, &name)?,
        "image" | "reference" | "responses" if value.is_null() => {}
        "image" => case.image = Some(image(&text(value, &name)?, file)?),
        "reference" => case.reference = Some(text(value, &name)?),
        "responses" => case.responses = responses(value)?,
        _ => {
            case.extra.insert(name, value);
        }
    }
    Ok(())
}

/// The image with this name; the path is relative to the file.
pub(super) fn image(name: &str, file: &Path) -> Result<ImageSource, String> {
    if name.trim().is_empty() {
        return Err("field `image` is empty: leave it out for a case without an image".into());
    }
    let folder = file.parent().unwrap_or(Path::new(""));
    Ok(ImageSource::File(folder.join(name)))
}

fn text(value: Value, name: &str) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(format!(
            "field `{name}` is {}, expected a string",
            kind(&other)
        )),
    }
}

fn responses(value: Value) -> Result<Vec<Response>, String> {
    let Value::Array(items) = value else {
        let found = kind(&value);
        return Err(format!(
            "field `responses` is {found}, expected [{{model, text}}, ...]"
        ));
    };
    items
        .into_iter()
        .enumerate()
        .map(|(index, item)| response(index + 1, item))
        .collect()
}

fn response(number: usize, value: Value) -> Result<Response, String> {
    let Value::Object(mut fields) = value else {
        return Err(format!(
            "response {number} is {}, expected {{model, text}}",
            kind(&value)
        ));
    };
    let mut take = |name: &str| match fields.get_mut(name).map(Value::take) {
        Some(Value::String(text)) => Ok(text),
        // A response without text affects only this response.
        _ if name == "text" => Ok(String::new()),
        Some(other) => Err(format!(
            "`{name}` of response {number} is {}, expected a string",
            kind(&other)
        )),
        None => Err(format!("response {number} has no `{name}`")),
    };
    Ok(Response {
        model: take("model")?,
        text: take("text")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "set/cases.jsonl";

    fn fault(line: &str) -> (Option<String>, String) {
        let fault = parse(line, Path::new(FILE)).unwrap_err();
        (fault.id, fault.message)
    }

    fn case(line: &str) -> Case {
        let (case, faults) = parse(line, Path::new(FILE)).unwrap();
        assert_eq!(faults, [""; 0]);
        case
    }

    #[test]
    fn all_fields_are_read_and_unknown_fields_kept() {
        let line = r#"{"id": 7, "image": "images/a.png", "question": "Is it?", "zeta": 1,
            "responses": [{"model": "a", "text": "yes", "tokens": 3}, {"model": "b", "text": "no"}],
            "reference": "yes", "labels": {"final": [5, 1]}, "meta": {"organ": "lung"}, "alpha": []}"#;
        let case = case(line);
        assert_eq!(case.id, "7");
        assert_eq!(
            case.image,
            Some(ImageSource::File("set/images/a.png".into()))
        );
        assert_eq!(
            case.responses[1],
            Response {
                model: "b".into(),
                text: "no".into()
            }
        );
        assert_eq!(case.reference.as_deref(), Some("yes"));
        assert_eq!(case.labels.unwrap().last, Some(vec![5.0, 1.0]));
        assert_eq!(case.meta["organ"], "lung");
        assert_eq!(case.extra.keys().collect::<Vec<_>>(), ["zeta", "alpha"]);
    }

    #[test]
    fn null_and_absent_are_the_same() {
        let line = r#"{"id": "x", "image": null, "question": "Is it?", "reference": null}"#;
        let bare = case(line);
        assert_eq!(
            (bare.image, bare.reference, bare.labels),
            (None, None, None)
        );
        let outside = r#"{"id": "x", "image": "/far/../a.png", "question": "Is it?"}"#;
        let case = case(outside);
        assert_eq!(case.image, Some(ImageSource::File("/far/../a.png".into())));
    }

    #[test]
    fn problems_have_line_and_message() {
        assert_eq!(fault("[1]").0, None);
        assert_eq!(fault(r#"{"id": "k", "question"#).0.as_deref(), Some("k"));
        let named = |line: &str, part: &str| {
            let (id, message) = fault(line);
            assert!(message.contains(part), "{message}");
            id
        };
        assert_eq!(named(r#"{"question": "q"}"#, "`id` is missing"), None);
        assert_eq!(named(r#"{"id": [], "question": "q"}"#, "an array"), None);
        assert_eq!(
            named(r#"{"id": 1}"#, "`question` is missing").as_deref(),
            Some("1")
        );
        named(r#"{"id": 1, "question": 2}"#, "`question` is a number");
        named(
            r#"{"id": 1, "question": "q", "image": " "}"#,
            "`image` is empty",
        );
        named(
            r#"{"id": 1, "question": "q", "responses": "r"}"#,
            "`responses` is a string",
        );
        named(
            r#"{"id": 1, "question": "q", "responses": ["r"]}"#,
            "response 1 is a string",
        );
        named(
            r#"{"id": 1, "question": "q", "responses": [{"text": "t"}]}"#,
            "no `model`",
        );
        named(
            r#"{"id": 1, "question": "q", "responses": [{"model": 1}]}"#,
            "`model` of response 1",
        );
        named(r#"{"id": 1, "question": "\ud8"}"#, "malformed JSON");
    }

    #[test]
    fn malformed_optional_field_affects_no_verdict() {
        let line = r#"{"id": 1, "question": "q", "labels": {"x": 1}, "meta": 1,
            "responses": [{"model": "a", "text": 4}, {"model": "b", "text": "no"}]}"#;
        let (case, faults) = parse(line, Path::new(FILE)).unwrap();
        assert!(faults[0].contains("unknown name `x`"), "{faults:?}");
        assert!(faults[1].contains("`meta` is a number"), "{faults:?}");
        assert_eq!(case.responses[0].text, "");
        assert_eq!((case.labels, case.meta.len()), (None, 0));
    }

    #[test]
    fn malformed_line_names_its_models() {
        let line = r#"{"id": 1, "question": 2, "responses": [{"model": "a"}, {"model": "b"}, 3]}"#;
        let fault = parse(line, Path::new(FILE)).unwrap_err();
        assert_eq!(fault.models, ["a", "b"]);
    }
}
