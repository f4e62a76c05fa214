//! A table whose columns the user named, or whose names tell their roles.

use serde_json::Value;

use super::row_context::RowContext;
use crate::data::cases::case::case_id::parse_id;
use crate::data::cases::image_fields::{find_image_field, ignored_image_message};
use crate::data::cases::source_options::SourceKind;
use crate::data::imports::columns::column_roles::{AnswerColumn, ColumnRoles};
use crate::data::imports::image_value::{ImportedImageKey, embedded, image_of};
use crate::data::imports::imported_row::{ImportedAnswer, ImportedRow};
use crate::data::imports::rows::table_row::{TableRow, text_of};

/// Maximum length of the text of another column that becomes a field of `meta`.
const MAX_META_BYTES: usize = 200;

/// Reads a row.
pub(super) fn read_row(
    row: &TableRow,
    roles: &ColumnRoles,
    context: &RowContext,
) -> Result<ImportedRow, String> {
    let field = |column: &Option<String>| column.as_deref().and_then(|name| row.field(name));
    let id = match &roles.id {
        Some(column) => {
            let id = row.field(column).and_then(parse_id);
            Some(id.ok_or_else(|| format!("column `{column}` has no id"))?)
        }
        None => None,
    };
    let question = match &roles.question {
        Some(column) => {
            let question = row.field(column).and_then(text_of);
            Some(question.ok_or_else(|| format!("column `{column}` has no question"))?)
        }
        None => None,
    };
    let model = field(&roles.model).and_then(text_of);
    let answer = |AnswerColumn { model: named, column }: &AnswerColumn| ImportedAnswer {
        model: named.clone().or_else(|| model.clone()),
        text: row.field(column).and_then(text_of).unwrap_or_default(),
    };
    let mut imported = ImportedRow {
        question,
        reference: field(&roles.reference).and_then(text_of),
        answers: roles.answers.iter().map(answer).collect(),
        ..ImportedRow::default()
    };
    let name = id.as_deref().unwrap_or("image");
    if let Some(column) = &roles.image {
        // A Parquet file has the bytes of an image in `image.bytes`, and its name in `image.path`.
        let bytes = row.bytes(column).or_else(|| row.bytes(&format!("{column}.bytes")));
        let path = row.field(&format!("{column}.path"));
        let value = row.field(column).or(path).unwrap_or(&Value::Null);
        match bytes {
            Some(bytes) if context.folders.is_skipped => {
                imported.image_key = Some(ImportedImageKey::of_bytes(bytes));
            }
            None if context.folders.is_skipped => {
                imported.image_key = ImportedImageKey::of_value(value, &context.folders);
            }
            Some(bytes) => {
                let stem = path.and_then(Value::as_str).unwrap_or(name);
                imported.image = Some(embedded(stem, bytes.clone()));
            }
            None => imported.set_image(image_of(value, name, &context.folders)),
        }
    }
    let is_known = |column: &String| {
        roles.columns().any(|known| {
            column == known || column.split('.').next() == Some(known) && column.contains('.')
        })
    };
    if roles.image.is_none() {
        let mut bytes = row.bytes.iter().map(|(name, _)| name.as_str());
        let found = find_image_field(row.fields.iter().filter(|(name, _)| !is_known(name)));
        let message = |column| ignored_image_message(column, SourceKind::Import);
        imported.note = found.or_else(|| bytes.next()).map(message);
    }
    for (column, value) in &row.fields {
        let text = text_of(value).filter(|text| text.len() <= MAX_META_BYTES);
        if let (Some(text), false) = (text, is_known(column) || value.is_object()) {
            imported.meta.insert(column.clone(), text.into());
        }
    }
    imported.id = id;
    Ok(imported)
}
