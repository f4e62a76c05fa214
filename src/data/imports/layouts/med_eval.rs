//! `results.json` of MedEvalKit: no ids and no images, so the position is the id.

use serde_json::{Map, Value};

use crate::data::imports::imported_row::{ImportedAnswer, ImportedRow};
use crate::data::imports::rows::table_row::{TableRow, text_of};

/// Reads a row.
pub(super) fn read_row(row: &TableRow) -> Result<ImportedRow, String> {
    let text = |name: &str| row.field(name).and_then(text_of);
    let mut meta = Map::new();
    for name in ["answer_type", "lang", "modality"] {
        if let Some(value) = row.field(name).filter(|value| value.is_string()) {
            meta.insert(name.to_owned(), value.clone());
        }
    }
    let answer = row.field("response").and_then(Value::as_str).unwrap_or_default();
    Ok(ImportedRow {
        question: Some(text("question").ok_or("field `question` is missing or empty")?),
        reference: text("answer"),
        answers: vec![ImportedAnswer { model: None, text: answer.to_owned() }],
        meta,
        ..ImportedRow::default()
    })
}
