//! SLAKE as released: `train.json`, `validate.json` or `test.json` next to `imgs/`.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::data::cases::case::case_id::{json_type, parse_id};
use crate::data::cases::case::{ImageSource, InputProblem};
use crate::data::cases::draft::{Draft, Drafts, QuestionRow};
use crate::data::cases::formats::json_array::{NumberedRow, read_rows};
use crate::data::cases::source_options::Lang;

/// A row of the release, with the fields in use.
#[derive(Clone, Debug, Deserialize)]
struct SlakeRow {
    /// Id of the question.
    qid: Value,
    /// A file in `imgs/`, such as `xmlab1/source.jpg`.
    img_name: String,
    /// The question, in English or Chinese.
    question: String,
    /// The reference answer.
    answer: String,
    /// `en` or `zh`.
    q_lang: String,
    /// The part of the body.
    #[serde(default)]
    location: String,
    /// `CT`, `MRI` or `X-Ray`.
    #[serde(default)]
    modality: String,
    /// `CLOSED` or `OPEN`.
    #[serde(default)]
    answer_type: String,
    /// `vqa`, or `kvqa` if the question needs external knowledge.
    #[serde(default)]
    base_type: String,
    /// Question type: `Organ`, `Position`, ...
    #[serde(default)]
    content_type: String,
}

impl SlakeRow {
    /// Reads the rows of a split.
    fn read_all(path: &Path) -> Result<impl Iterator<Item = NumberedRow<Self>> + use<>> {
        read_rows(path, "qid")
    }
}

/// Reads the cases of a split. Cases in other languages are marked as unselected.
pub(crate) fn read_drafts(path: &Path, lang: Lang) -> Result<Drafts> {
    let file: Arc<Path> = path.into();
    Ok(Box::new(SlakeRow::read_all(path)?.map(move |row| {
        let (line, row) = row?;
        let is_selected = lang.includes(&row.q_lang);
        let draft = parse_draft(row, line, &file)?;
        Ok(Draft { is_selected, ..draft })
    })))
}

fn parse_draft(row: SlakeRow, line: u64, file: &Arc<Path>) -> Result<Draft, InputProblem> {
    let Some(qid) = parse_id(&row.qid) else {
        let message = format!(
            "field `qid` is {}, expected a number or a non-empty string",
            json_type(&row.qid)
        );
        return Err(InputProblem::parse_error(file, line, None, message));
    };
    let id = format!("slake-{qid}");
    let mut meta = Map::new();
    meta.insert("dataset".into(), "slake".into());
    let fields = [
        ("modality", row.modality),
        ("location", row.location),
        ("content_type", row.content_type),
        ("answer_type", row.answer_type),
        ("lang", row.q_lang),
        ("base_type", row.base_type),
    ];
    for (name, value) in fields {
        meta.insert(name.into(), value.trim().into());
    }
    let images = file.parent().unwrap_or(Path::new("")).join("imgs");
    let row = QuestionRow {
        id,
        other_keys: vec![qid],
        image: Some(ImageSource::File(images.join(&row.img_name))),
        question: row.question,
        reference: Some(row.answer.trim().to_owned()),
        meta,
        line,
    };
    Ok(Draft::from_question(row, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_filtered_by_language() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("train.json");
        let row = |qid: u32, lang: &str| {
            format!(
                "{{\"qid\": {qid}, \"img_name\": \"xmlab1/source.jpg\", \"question\": \"q\", \
                 \"answer\": \"MRI\", \"q_lang\": \"{lang}\", \"modality\": \"MRI\"}}"
            )
        };
        let text = format!("[{},\n{},\n{{\"qid\": 9}}]", row(1, "en"), row(2, "zh"));
        std::fs::write(&path, text).unwrap();
        let ids = |lang| -> Vec<_> {
            read_drafts(&path, lang)
                .unwrap()
                .filter(|d| d.as_ref().map_or(true, |d| d.is_selected))
                .map(|d| d.map_or_else(|p| format!("{:?}", p.id), |d| d.case.id))
                .collect()
        };
        assert_eq!(ids(Lang::En), ["slake-1", "Some(\"9\")"]);
        assert_eq!(ids(Lang::Zh), ["slake-2", "Some(\"9\")"]);
        assert_eq!(ids(Lang::All).len(), 3);
        let first = read_drafts(&path, Lang::En).unwrap().next().unwrap().unwrap();
        let image = dir.path().join("imgs/xmlab1/source.jpg");
        assert_eq!(first.case.image, Some(ImageSource::File(image)));
        assert_eq!(first.case.meta["modality"], "MRI");
        assert_eq!(first.case.meta["lang"], "en");
    }
}
