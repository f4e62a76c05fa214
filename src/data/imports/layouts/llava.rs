//! Questions and answers in LLaVA's format: one object per line.

use serde_json::Value;

use super::row_context::RowContext;
use crate::data::cases::case::case_id::parse_id;
use crate::data::imports::image_value::image_of;
use crate::data::imports::imported_row::{ImportedAnswer, ImportedRow};
use crate::data::imports::rows::table_row::{TableRow, text_of};

/// Fields of a question file that hold the reference.
const REFERENCES: [&str; 5] = ["reference", "answer", "gt_answer", "ground_truth", "gt"];

/// Reads a question.
pub(super) fn read_question(row: &TableRow, context: &RowContext) -> Result<ImportedRow, String> {
    let id = question_id(row)?;
    let text = row.field("text").and_then(text_of).ok_or("field `text` is missing or empty")?;
    let mut imported = ImportedRow {
        question: Some(text.replace("<image>", "").trim().to_owned()),
        reference: REFERENCES.iter().find_map(|name| row.field(name).and_then(text_of)),
        ..ImportedRow::default()
    };
    if let Some(image) = row.field("image") {
        imported.set_image(image_of(image, &id, &context.folders));
    }
    imported.id = Some(id);
    Ok(imported)
}

/// Reads an answer.
pub(super) fn read_answer(row: &TableRow) -> Result<ImportedRow, String> {
    let model = row.field("model_id").and_then(text_of).map(|name| name.trim().to_owned());
    let text = row.field("text").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(ImportedRow {
        id: Some(question_id(row)?),
        answers: vec![ImportedAnswer { model, text }],
        ..ImportedRow::default()
    })
}

fn question_id(row: &TableRow) -> Result<String, String> {
    let id = row.field("question_id").and_then(parse_id);
    id.ok_or_else(|| "field `question_id` is missing or empty".to_owned())
}
