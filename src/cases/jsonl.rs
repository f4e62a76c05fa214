//! A JSONL file of cases: one object per line.
//!
//! `{"id", "image", "question", "responses": [{"model", "text"}, ...]}` and, where known,
//! `reference`, `labels` and `meta`. Other fields are kept as they came.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

use super::case::{Case, ImageSource, Problem, Response};
use super::draft::{Draft, Drafts};
use super::ident::{id_in_broken, id_text, kind};
use super::labels;
use super::lines::Lines;
use crate::regular;

/// The cases of a file. Image paths are relative to it.
pub(super) fn drafts(path: &Path) -> Result<Drafts> {
    let opened = open(path)?;
    let file: Arc<Path> = path.into();
    Ok(Box::new(Lines::new(BufReader::new(opened)).map(
        move |(line, text)| {
            let parsed = text
                .map_err(|e| (None, e))
                .and_then(|text| parse(&text, &file));
            match parsed {
                Ok(case) => {
                    let keys = vec![case.id.clone()];
                    Ok(Draft {
                        case: Case { line, ..case },
                        keys,
                        file: Arc::clone(&file),
                        wanted: true,
                    })
                }
                Err((id, fault)) => Err(Problem::parse(&file, line, id, fault)),
            }
        },
    )))
}

/// The number of lines that are not blank.
pub(super) fn count(path: &Path) -> Result<u64> {
    Ok(Lines::new(BufReader::new(open(path)?)).count() as u64)
}

fn open(path: &Path) -> Result<File> {
    regular::open(path).with_context(|| format!("cases file {} cannot be opened", path.display()))
}

/// A case, or its id (where it can be read) and what is wrong.
fn parse(line: &str, file: &Path) -> Result<Case, (Option<String>, String)> {
    let value: Value = serde_json::from_str(line)
        .map_err(|e| (id_in_broken(line, "id"), format!("broken JSON: {e}")))?;
    let Value::Object(fields) = value else {
        return Err((
            None,
            format!("the line is {}, expected an object", kind(&value)),
        ));
    };
    let id = match fields.get("id") {
        None => return Err((None, "field `id` is missing".into())),
        Some(id) => id_text(id).ok_or_else(|| {
            let fault = format!("field `id` is {}, expected a number or a text", kind(id));
            (None, fault)
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
    let filled = filled.and_then(|()| {
        fields
            .into_iter()
            .try_for_each(|(name, value)| fill(&mut case, name, value, file))
    });
    match filled {
        Ok(()) => Ok(case),
        Err(fault) => Err((Some(case.id), fault)),
    }
}

fn fill(case: &mut Case, name: String, value: Value, file: &Path) -> Result<(), String> {
    match name.as_str() {
        "id" => {}
        "question" => case.question = text(value, &name)?,
        "image" | "reference" | "responses" | "labels" | "meta" if value.is_null() => {}
        "image" => case.image = Some(image(&text(value, &name)?, file)?),
        "reference" => case.reference = Some(text(value, &name)?),
        "responses" => case.responses = responses(value)?,
        "labels" => case.labels = Some(labels::parse(value)?),
        "meta" => match value {
            Value::Object(meta) => case.meta = meta,
            other => {
                return Err(format!(
                    "field `meta` is {}, expected an object",
                    kind(&other)
                ));
            }
        },
        _ => {
            case.extra.insert(name, value);
        }
    }
    Ok(())
}

/// The image a file names: the path is relative to that file.
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
        // A response without an answer costs this response only, not the case.
        None | Some(Value::Null) if name == "text" => Ok(String::new()),
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
        parse(line, Path::new(FILE)).unwrap_err()
    }

    #[test]
    fn reads_every_field_and_keeps_the_rest() {
        let line = r#"{"id": 7, "image": "images/a.png", "question": "Is it?", "zeta": 1,
            "responses": [{"model": "a", "text": "yes", "tokens": 3}, {"model": "b", "text": "no"}],
            "reference": "yes", "labels": {"final": [5, 1]}, "meta": {"organ": "lung"}, "alpha": []}"#;
        let case = parse(line, Path::new(FILE)).unwrap();
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
        let case = parse(line, Path::new(FILE)).unwrap();
        assert_eq!(
            (case.image, case.reference, case.labels),
            (None, None, None)
        );
        let outside = r#"{"id": "x", "image": "/far/../a.png", "question": "Is it?"}"#;
        let case = parse(outside, Path::new(FILE)).unwrap();
        assert_eq!(case.image, Some(ImageSource::File("/far/../a.png".into())));
    }

    #[test]
    fn says_what_is_wrong_and_where() {
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
        named(
            r#"{"id": 1, "question": "q", "labels": {"x": 1}}"#,
            "unknown name `x`",
        );
        named(
            r#"{"id": 1, "question": "q", "meta": 1}"#,
            "`meta` is a number",
        );
        named(r#"{"id": 1, "question": "\ud800"}"#, "broken JSON");
    }
}
