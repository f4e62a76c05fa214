//! VQA-RAD as released: `VQA_RAD Dataset Public.json` next to `images/`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::data::cases::case::case_id::{json_type, parse_id};
use crate::data::cases::case::{ImageSource, InputProblem};
use crate::data::cases::draft::{Draft, Drafts, QuestionRow};
use crate::data::cases::formats::json_array::{NumberedRow, read_rows};

/// A row of the release, with the fields in use.
#[derive(Clone, Debug, Deserialize)]
struct VqaRadRow {
    /// Id of the question, a number or a string.
    qid: Value,
    /// A file in `images/`.
    image_name: String,
    /// The question.
    question: String,
    /// The answer: a string or a number.
    answer: Value,
    /// `PRES`, `POS`, ...
    #[serde(default)]
    question_type: String,
    /// `CLOSED` or `OPEN`, sometimes with a trailing space.
    #[serde(default)]
    answer_type: String,
    /// `HEAD`, `CHEST` or `ABD`.
    #[serde(default)]
    image_organ: String,
    /// `freeform`, `para`, ...
    #[serde(default)]
    phrase_type: String,
}

impl VqaRadRow {
    /// Reads the rows of the release.
    fn read_all(path: &Path) -> Result<impl Iterator<Item = NumberedRow<Self>> + use<>> {
        read_rows(path, "qid")
    }

    /// Returns the answer as text; `None` if it is neither string nor number.
    fn answer_text(&self) -> Option<String> {
        match &self.answer {
            Value::String(text) => Some(text.trim().to_owned()),
            number @ Value::Number(_) => parse_id(number),
            _ => None,
        }
    }
}

/// Returns the image folder next to the file: `images`, or `VQA_RAD Image Folder` as in the
/// downloaded archive.
fn image_folder(path: &Path) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new(""));
    let archive_folder = folder.join("VQA_RAD Image Folder");
    let images = folder.join("images");
    if archive_folder.is_dir() && !images.is_dir() { archive_folder } else { images }
}

/// Reads the cases of the release.
pub(crate) fn read_drafts(path: &Path) -> Result<Drafts> {
    let file: Arc<Path> = path.into();
    let images = image_folder(path);
    Ok(Box::new(VqaRadRow::read_all(path)?.map(move |row| {
        let (line, row) = row?;
        parse_draft(row, line, &images, &file)
            .map_err(|(id, message)| InputProblem::parse_error(&file, line, id, message))
    })))
}

/// Id of the row, if readable, and the error message.
type VqaRadError = (Option<String>, String);

fn parse_draft(
    row: VqaRadRow,
    line: u64,
    images: &Path,
    file: &Arc<Path>,
) -> Result<Draft, VqaRadError> {
    let qid = parse_id(&row.qid).ok_or_else(|| {
        (
            None,
            format!(
                "field `qid` is {}, expected a number or a non-empty string",
                json_type(&row.qid)
            ),
        )
    })?;
    let id = format!("vqa_rad-{qid}");
    let Some(reference) = row.answer_text() else {
        let message =
            format!("field `answer` is {}, expected a number or a string", json_type(&row.answer));
        return Err((Some(id), message));
    };
    let mut meta = Map::new();
    meta.insert("dataset".into(), "vqa_rad".into());
    let fields = [
        ("question_type", &row.question_type),
        ("answer_type", &row.answer_type),
        ("organ", &row.image_organ),
        ("phrase_type", &row.phrase_type),
    ];
    for (name, value) in fields {
        meta.insert(name.into(), value.trim().into());
    }
    let row = QuestionRow {
        id,
        other_keys: vec![qid],
        image: Some(ImageSource::File(images.join(&row.image_name))),
        question: row.question,
        reference: Some(reference),
        meta,
        line,
    };
    Ok(Draft::from_question(row, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_is_read_and_malformed_rows_are_problems() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("VQA_RAD Dataset Public.json");
        let text = r#"[
{"qid": "0", "image_name": "a.jpg", "question": "Is it?", "answer": "Yes ",
 "answer_type": "CLOSED ", "question_type": "PRES", "image_organ": "HEAD", "phrase_type": "para"},
{"qid": 1, "image_name": "a.jpg", "question": "How many?", "answer": 2},
{"qid": 2, "image_name": "a.jpg", "question": "How many?"},
{"qid": 3, "image_name": "a.jpg", "question": "How many?", "answer": null},
{"qid": 4, "image_name": oops},
{"qid": null, "image_name": "a.jpg", "question": "Is it?", "answer": "no"}
]"#;
        std::fs::write(&path, text).unwrap();
        let drafts: Vec<_> = read_drafts(&path).unwrap().collect();
        let first = drafts[0].as_ref().unwrap();
        assert_eq!(first.keys, ["0", "vqa_rad-0"]);
        assert_eq!((first.case.line, first.case.reference.as_deref()), (2, Some("Yes")));
        assert_eq!(first.case.meta["answer_type"], "CLOSED");
        assert_eq!(first.case.image, Some(ImageSource::File(dir.path().join("images/a.jpg"))));
        assert_eq!(drafts[1].as_ref().unwrap().case.reference.as_deref(), Some("2"));
        let problems: Vec<_> = drafts.iter().filter_map(|d| d.as_ref().err()).collect();
        let ids: Vec<_> = problems.iter().map(|p| (p.line, p.id.as_deref())).collect();
        assert_eq!(ids, [(5, Some("2")), (6, Some("vqa_rad-3")), (7, Some("4")), (8, None)]);
        assert!(problems[0].message.contains("answer"), "{}", problems[0]);
    }

    #[test]
    fn image_folder_of_the_archive_is_the_fallback() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        std::fs::create_dir(dir.path().join("VQA_RAD Image Folder")).unwrap();
        assert!(image_folder(&path).ends_with("VQA_RAD Image Folder"));
        std::fs::create_dir(dir.path().join("images")).unwrap();
        assert!(image_folder(&path).ends_with("images"));
    }
}
