//! `DATE_samples_TASK.jsonl` of lmms-eval with `--log_samples`.

use super::lm_eval::first_text;
use super::post_prompt::{input_text, without_post_prompt};
use super::row_context::RowContext;
use crate::data::cases::case::case_id::parse_id;
use crate::data::imports::image_value::image_of;
use crate::data::imports::imported_row::{ImportedAnswer, ImportedRow, WITHOUT_IMAGE};
use crate::data::imports::rows::table_row::{TableRow, text_of};

/// Returns the task in the name of a file.
pub(super) fn task_of(stem: &str) -> Option<String> {
    let (_, task) = stem.split_once("_samples_")?;
    Some(task.to_owned())
}

/// Reads a row. The image is in `input_media`, if the harness wrote it.
pub(super) fn read_row(row: &TableRow, context: &RowContext) -> Result<ImportedRow, String> {
    let id = row.field("doc_id").and_then(parse_id).ok_or("field `doc_id` is missing")?;
    let id = context.task_id(&id);
    let input = row.field("input").and_then(first_text).ok_or("field `input` has no text")?;
    let input = input_text(&input);
    let question = without_post_prompt(&input, &context.post_prompts);
    let answer = row.field("filtered_resps").and_then(first_text).unwrap_or_default();
    let mut imported = ImportedRow {
        question: Some(question.to_owned()),
        reference: row.field("target").and_then(text_of),
        answers: vec![ImportedAnswer { model: None, text: answer }],
        ..ImportedRow::default()
    };
    if let Some(media) = row.field("input_media") {
        imported.set_image(image_of(media, &id, &context.folders));
    } else {
        let reason = "the row has no `input_media`: lmms-eval leaves out images above 300 kB";
        imported.note = Some(format!("{reason}: {WITHOUT_IMAGE}"));
    }
    imported.id = Some(id);
    Ok(imported)
}
